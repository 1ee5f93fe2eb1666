#include "base/log.h"
#include "base/mutex.h"
#include "cluster/hosted_partition.h"
#include "cluster/partition_table.h"
#include "cluster/partition_table_impl.h"
#include "storage/error.h"
#include "storage/journal.h"
#include "storage/journal_reader.h"
#include "storage/log_dir.h"
#include "storage/partition_log.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <expected>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace kaas::cluster {

std::vector<PartitionTable::Impl::Opening> PartitionTable::Impl::take_openings() {
    auto taken = take_share(openings_);
    for (auto& opening : taken) {
        const auto local = topics_.find(opening.partition->id().topic);
        if (local != topics_.end() && opening.partition->tenancy().still_wanted())
            opening.config = local->second.config;
    }
    return taken;
}

void PartitionTable::Impl::open_some() {
    std::vector<Opening> openings;
    std::shared_ptr<const Places> places;
    {
        base::MutexLock lock(mutex_);
        openings = take_openings();
        places = places_;
    }
    if (openings.empty()) return;  // another job has taken more than one
    const bool recovers = std::ranges::any_of(
        openings, [](const Opening& opening) { return !opening.tenure.walk.empty(); });
    const auto begin = options_.clock->now();
    open_logs_of(openings, *places);
    if (recovers) {
        options_.on_recovered(
            std::chrono::duration_cast<std::chrono::microseconds>(options_.clock->now() - begin));
    }
    for (const auto& [partition, life, tenure, config, log] : openings) {
        if (!log || !(*log)->written_epoch()) continue;
        tell_old_journals(*partition, tenure, *places);
        // Before the controller forgets them: a death here leaves them to the next life.
        if (!note_left_volumes(*partition, tenure)) continue;
        leave_old_volumes(partition);
        base::MutexLock lock(mutex_);
        partition->copying = false;
    }
    for (const auto& log : take_opened(std::move(openings)))
        log->abandon(storage::ErrorCode::kFenced);
    flush();
}

std::vector<storage::LogPtr> PartitionTable::Impl::take_opened(std::vector<Opening> openings) {
    std::vector<storage::LogPtr> unwanted;
    base::MutexLock lock(mutex_);
    for (auto& [partition, life, tenure, config, log] : openings) {
        if (life != partition->life()) {
            if (log) unwanted.push_back(std::move(*log));
            continue;
        }
        partition->opened(std::move(log), options_.clock->now());
        auto local = topics_.find(partition->id().topic);
        if (partition->log() && local != topics_.end() && local->second.config != config) {
            partition->log()->set_config(local->second.config);
        }
        if (auto news = partition->news()) outbox_.opened.push_back(*news);
        go_on(partition);
    }
    tell_progress();
    note_change();
    return unwanted;
}

/// The log has told the journal of its own volume that earlier epochs need no entries. One that
/// left another volume without a last line has entries there, too.
void PartitionTable::Impl::tell_old_journals(const HostedPartition& partition, const Tenure& tenure,
                                             const Places& places) {
    for (const auto& step : tenure.walk) {
        const auto place = places.find(step.volume);
        if (place == places.end() || step.volume == tenure.volume) continue;
        auto& logs = *place->second.logs;
        logs.journal_readers().superseded(partition.id(), tenure.epoch, logs.session());
        if (auto* const journal = logs.journal()) journal->superseded(partition.id(), tenure.epoch);
    }
}

void PartitionTable::Impl::open_logs_of(std::vector<Opening>& openings, const Places& places) {
    std::vector<storage::PartitionLogOptions> options;
    std::vector<Opening*> asked;
    for (auto& opening : openings) {
        auto one = log_options(opening, places);
        if (!one) {
            opening.log = std::unexpected(std::move(one).error());
            continue;
        }
        options.push_back(std::move(*one));
        asked.push_back(&opening);
    }
    auto logs = storage::PartitionLog::open_together(std::move(options));
    for (std::size_t i = 0; i < asked.size(); ++i) asked[i]->log = std::move(logs[i]);
}

storage::Result<storage::PartitionLogOptions> PartitionTable::Impl::log_options(
    const Opening& opening, const Places& places) {
    const auto own = places.find(opening.tenure.volume);
    if (!opening.config || own == places.end())
        return storage::fail(storage::ErrorCode::kClosed, "not wanted any more");
    storage::PartitionLogOptions options;
    options.log_dir = own->second.logs;
    options.directory = opening.partition->directory();
    options.epoch = opening.tenure.epoch;
    options.config = opening.config;
    for (const auto& step : opening.tenure.walk) {
        auto place = places.find(step.volume);
        if (place == places.end()) {
            return storage::fail(storage::ErrorCode::kIo, "epoch " +
                                                              std::to_string(step.epoch.value()) +
                                                              " lies on volume '" + step.volume +
                                                              "', which this broker does not have");
        }
        options.earlier.push_back({place->second.volume, step.epoch.value(), step.written});
    }
    return options;
}

void PartitionTable::Impl::tell_progress() {
    if (openings_.steps.size() < 1'000 && !progress_said_) return;  // too few to be worth it
    const auto now = options_.clock->now();
    if (!openings_.steps.empty() && now < next_progress_) return;
    next_progress_ = now + std::chrono::seconds(1);
    progress_said_ = !openings_.steps.empty();
    base::log::info("cluster", "partitions: {} wait to be opened", openings_.steps.size());
}

}  // namespace kaas::cluster
