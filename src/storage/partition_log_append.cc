#include "base/assert.h"
#include "storage/partition_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

// The appending side: checks, offsets, producers. No file is touched here.

namespace kaas::storage {
namespace {

[[nodiscard]] BatchFacts facts_of(const wire::BatchHeader& header, base::Offset base_offset,
                                  std::int64_t now_ms) {
    return {.base_offset = base_offset,
            .last_offset = base_offset + header.last_offset_delta,
            .bytes = header.size(),
            .max_timestamp_ms = header.max_timestamp,
            .now_ms = now_ms};
}

/// By what a batch was verified; empty when nobody verifies.
[[nodiscard]] std::optional<VerificationGuard> shown_by(const Append& request) {
    if (request.transaction_version == 0) return std::nullopt;
    return request.verification;
}

}  // namespace

Result<void> PartitionLog::check_epoch(std::int32_t current_leader_epoch) const {
    const auto own = epoch_.value();
    if (current_leader_epoch == -1 || current_leader_epoch == own) return {};
    return fail(
        current_leader_epoch < own ? ErrorCode::kWrongEpoch : ErrorCode::kUnknownEpoch,
        fmt::format("{}: leader epoch {}, asked with {}", directory(), own, current_leader_epoch));
}

Result<void> PartitionLog::check_open() const {
    if (ended_) return std::unexpected(*ended_);
    if (draining_) return fail(ErrorCode::kClosed, directory() + " is being released");
    return {};
}

Result<Accepted> PartitionLog::append(Append request, std::vector<RecordFault>* faults) {
    auto& log_dir = log_dir_;
    const auto now_ms = request.checked_ms.value_or(log_dir.clock().wall_ms());
    const auto limits = config();
    KAAS_TRY_ASSIGN(batch, take_batch(request, *limits, now_ms, faults));
    Appended appended{.log_start = log_start()};
    if (limits->timestamp_type == wire::TimestampType::kLogAppendTime)
        appended.log_append_time_ms = now_ms;

    base::MutexLock lock(mutex_);
    KAAS_TRY(check_open());
    KAAS_TRY(check_epoch(request.current_leader_epoch));
    if (batch.header.has_producer_id()) {
        KAAS_TRY_ASSIGN(repeated, producers_.classify(batch.header, shown_by(request)));
        if (repeated) {
            // Its ticket goes through a cycle behind the original's, so it is never answered before
            // it.
            appended.base_offset = repeated->base_offset;
            appended.log_append_time_ms = repeated->timestamp_ms;
            add_ticket(request, appended);
            ask_for_cycle();
            return Accepted{appended.base_offset, batch.header.count};
        }
    }
    // Before it has an offset: the log goes on, and so does its producer when there is room again.
    if (!log_dir.room().take(batch.bytes.size())) {
        return fail(ErrorCode::kNoSpace, directory() + ": what is left of the volume is kept");
    }
    KAAS_TRY_ASSIGN(base_offset, place({.frame = std::move(request.frame),
                                        .bytes = request.records.first(batch.bytes.size()),
                                        .header = batch.header,
                                        .now_ms = now_ms},
                                       *limits));
    appended.base_offset = base_offset;
    add_ticket(request, appended);
    return Accepted{base_offset, batch.header.count};
}

Result<Verification> PartitionLog::begin_verification(base::ProducerId producer,
                                                      base::ProducerEpoch epoch,
                                                      std::int32_t base_sequence,
                                                      bool supports_epoch_bump) {
    const auto now_ms = log_dir_.clock().wall_ms();
    base::MutexLock lock(mutex_);
    KAAS_TRY(check_open());
    return producers_.begin_verification(producer, epoch, base_sequence, supports_epoch_bump,
                                         now_ms);
}

Result<void> PartitionLog::append_marker(const Marker& marker, base::Executor& home,
                                         std::move_only_function<void(Result<Appended>)> done) {
    const auto now_ms = log_dir_.clock().wall_ms();
    const auto limits = config();
    const auto encoded = encode_marker(marker, now_ms);
    auto block = base::Block::allocate(encoded.size());
    const base::MutableBytes bytes(block->data(), encoded.size());
    std::ranges::copy(encoded, bytes.begin());
    Appended appended{.log_start = log_start()};
    if (limits->timestamp_type == wire::TimestampType::kLogAppendTime) {
        wire::set_log_append_time(bytes, now_ms);
        appended.log_append_time_ms = now_ms;
    }
    const auto batch = wire::first_batch(bytes);
    KAAS_ASSERT(batch.has_value());

    base::MutexLock lock(mutex_);
    KAAS_TRY(check_open());
    KAAS_TRY(producers_.check_marker(marker));
    KAAS_TRY_ASSIGN(base_offset, place({.frame = {std::move(block), bytes},
                                        .bytes = bytes,
                                        .header = batch->header,
                                        .now_ms = now_ms,
                                        .marker = &marker},
                                       *limits));
    appended.base_offset = base_offset;
    pending_tickets_.push_back({Acks::kAll, appended, &home, std::move(done)});
    return {};
}

Result<base::Offset> PartitionLog::place(Judged batch, const LogConfig& config) {
    const auto& header = batch.header;
    const auto base_offset = next_offset_;
    auto facts = facts_of(header, base_offset, batch.now_ms);
    if (facts.last_offset < facts.base_offset)
        return fail(ErrorCode::kInvalidRecord, directory() + ": no offsets are left");
    wire::set_base_offset(batch.bytes, base_offset.value());
    wire::set_partition_leader_epoch(batch.bytes, epoch_.value());
    Piece piece{.frame = std::move(batch.frame),
                .bytes = batch.bytes,
                .base_offset = base_offset,
                .records = header.count,
                .must_sync = batch.marker != nullptr};
    if (plan_.must_roll_before(facts, batch.now_ms, config))
        piece.roll_before = plan_roll(batch.now_ms, config);
    if (batch.marker != nullptr) {
        piece.ends = producers_.end_transaction(*batch.marker, base_offset, header.max_timestamp,
                                                batch.now_ms);
        if (piece.ends) facts.aborted = piece.ends->index_entry();
    } else if (header.has_producer_id()) {
        auto placed = header;
        placed.base_offset = base_offset.value();
        piece.begins_transaction = producers_.record(placed, batch.now_ms);
    }
    piece.placement = plan_.add(facts, config);
    next_offset_ = facts.last_offset + 1;
    pending_.push_back(std::move(piece));
    ask_for_cycle();
    return base_offset;
}

Result<wire::BatchView> PartitionLog::take_batch(const Append& request, const LogConfig& config,
                                                 std::int64_t now_ms,
                                                 std::vector<RecordFault>* faults) const {
    if (!request.checked_ms) {
        return check_produced(request.records, config, now_ms, log_dir_.produce_site(), faults);
    }
    auto batch = wire::first_batch(request.records);
    KAAS_ASSERT(batch.has_value());
    return *batch;
}

std::unique_ptr<PartitionLog::Roll> PartitionLog::plan_roll(std::int64_t now_ms,
                                                            const LogConfig& config) {
    auto roll = std::make_unique<Roll>(plan_.time_entry(), producers_.images());
    plan_ = SegmentPlan(epoch_, next_offset_, now_ms,
                        roll_jitter_ms(config, directory(), next_offset_));
    return roll;
}

Result<Repacked> PartitionLog::repack(base::MutableBytes records,
                                      std::vector<RecordFault>& faults) const {
    auto& log_dir = log_dir_;
    return storage::repack(records, *config(), log_dir.clock().wall_ms(), log_dir.repack_site(),
                           &faults);
}

std::vector<ProducerImage> PartitionLog::producers() const {
    base::MutexLock lock(mutex_);
    return producers_.images();
}

void PartitionLog::add_ticket(Append& request, const Appended& appended) {
    if (request.acks == Acks::kNone) return;
    KAAS_ASSERT(request.home != nullptr);
    pending_tickets_.push_back({request.acks, appended, request.home, std::move(request.done)});
}

void PartitionLog::ask_for_cycle() {
    if (std::exchange(asked_for_cycle_, true)) return;
    log_dir_.enqueue(shared_from_this());
}

}  // namespace kaas::storage
