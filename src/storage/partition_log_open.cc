#include "base/mutex.h"
#include "storage/partition_log.h"
#include "storage/recovery.h"

#include <cstddef>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

// How a log comes to be, from what its recovery found.

namespace kaas::storage {
namespace {

[[nodiscard]] std::optional<JournalKey> key_in_journal(const LogDir& log_dir,
                                                       const std::string& directory,
                                                       base::LeaderEpoch epoch) {
    if (log_dir.journal() == nullptr) return std::nullopt;
    return journal_key(directory, epoch);
}

}  // namespace

PartitionLog::PartitionLog(PartitionLogOptions options, Opened opened)
    : log_dir_(*options.log_dir),
      paths_(std::move(opened.paths)),
      epoch_(options.epoch),
      journal_key_(key_in_journal(log_dir_, directory(), epoch_)),
      volume_(log_dir_.volume()),
      next_offset_(opened.end),
      plan_(opened.plan),
      producers_(std::move(opened.producers)),
      begun_(opened.epoch_log != nullptr),
      active_(std::move(opened.active)),
      written_(plan_.facts()),
      synced_bytes_(plan_.facts().bytes),
      last_sync_(log_dir_.clock().now()),
      epoch_log_(std::move(opened.epoch_log)),
      manifest_(std::move(opened.manifest)),
      config_(options.config.pointer()),
      view_(std::move(opened.view)),
      epochs_(manifest_.epochs),
      clean_to_(manifest_.clean_to),
      written_epoch_(opened.written_epoch),
      opened_end_(opened.end) {
    active_log_ = std::move(opened.active_log);
    base::MutexLock lock(manifest_mutex_);
    if (begun_) sweep_due_ = after_delete_delay();
    discard(manifest_.dropped);
}

PartitionLog::~PartitionLog() = default;

Result<std::shared_ptr<PartitionLog>> PartitionLog::open(PartitionLogOptions options) {
    KAAS_TRY_ASSIGN(opened, recover(options));
    return make(std::move(options), std::move(opened));
}

std::shared_ptr<PartitionLog> PartitionLog::make(PartitionLogOptions options, Opened opened) {
    std::shared_ptr<PartitionLog> log(new PartitionLog(std::move(options), std::move(opened)));
    if (log->begun_) {
        // The picture is written; a line must vouch for it before the next taker need not write
        // another.
        base::MutexLock lock(log->mutex_);
        log->unrecorded_ = true;
        log->remind();
    }
    return log;
}

std::vector<Result<std::shared_ptr<PartitionLog>>> PartitionLog::open_together(
    std::vector<PartitionLogOptions> options) {
    std::vector<Result<std::shared_ptr<PartitionLog>>> logs;
    if (options.empty()) return logs;
    auto opened = recover_together(options);
    logs.reserve(options.size());
    for (std::size_t i = 0; i < options.size(); ++i) {
        if (opened[i]) {
            logs.emplace_back(make(std::move(options[i]), std::move(*opened[i])));
        } else {
            logs.emplace_back(std::unexpected(std::move(opened[i]).error()));
        }
    }
    return logs;
}

}  // namespace kaas::storage
