// How a transaction ends: prepare, markers, complete.

#include "base/assert.h"
#include "base/clock.h"
#include "base/ids.h"
#include "base/log.h"
#include "coordinator/done.h"
#include "coordinator/transaction_metadata.h"
#include "coordinator/transaction_requests.h"
#include "coordinator/transaction_slot.h"
#include "storage/transaction_marker.h"

#include <cstdint>
#include <expected>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace kaas::coordinator {
namespace {

using State = TransactionState;

/// The marker that all partitions of a transaction that is being ended get.
storage::Marker marker_of(const TransactionMetadata& metadata, base::LeaderEpoch slot_epoch) {
    return {.producer = metadata.producer.id,
            .epoch = metadata.producer.epoch,
            .coordinator_epoch = slot_epoch.value(),
            .commit = metadata.state == State::kPrepareCommit,
            .transaction_version = metadata.version};
}

}  // namespace

void TransactionSlot::prepare(const TransactionPtr& transaction, const Preparation& how) {
    auto& metadata = transaction->metadata;
    metadata.state = how.commit ? State::kPrepareCommit : State::kPrepareAbort;
    metadata.previous_producer_id = metadata.producer.id;
    metadata.next_producer_id = how.next_id.value_or(base::kNoProducerId);
    metadata.update_ms = services_.clock.wall_ms();
    if (how.nothing_added) metadata.start_ms = metadata.update_ms;
    metadata.version = how.version;
    if (how.version >= kEpochBump) {
        // The markers carry the new epoch, so that partitions refuse the old one from then on.
        metadata.last_epoch = metadata.producer.epoch;
        if (metadata.producer.epoch.value() < std::numeric_limits<std::int16_t>::max())
            ++metadata.producer.epoch;
    }
    keep(metadata);
    (how.commit ? services_.metrics.committed : services_.metrics.aborted).add();
    begin_ending(transaction);
}

void TransactionSlot::begin_ending(const TransactionPtr& transaction) {
    const auto& partitions = transaction->metadata.partitions;
    transaction->ending = std::make_shared<Ending>();
    transaction->ending->unmarked = partitions;
    // No effect leaves before the decision is durable.
    services_.writer.settle([this, transaction](bool durable) {
        if (!durable || closed_) return;
        const auto& all = transaction->metadata.partitions;
        if (all.empty()) return complete(*transaction);
        send_markers(transaction, {all.begin(), all.end()});
    });
}

void TransactionSlot::send_markers(const TransactionPtr& transaction,
                                   const std::vector<TransactionPartition>& partitions) {
    const auto marker = marker_of(transaction->metadata, services_.epoch);
    for (const auto& partition : partitions) {
        services_.markers.send(
            marker, partition,
            [this, life = std::weak_ptr(life_), transaction, partition](ErrorCode error) {
                if (!life.expired() && !closed_) marked(transaction, partition, error);
            });
    }
}

void TransactionSlot::marked(const TransactionPtr& transaction,
                             const TransactionPartition& partition, ErrorCode error) {
    KAAS_ASSERT(transaction->ending != nullptr);  // each partition was sent to once at a time
    auto& ending = *transaction->ending;
    if (error == ErrorCode::kNone || error == ErrorCode::kUnknownTopicOrPartition) {
        ending.unmarked.erase(partition);
        if (ending.unmarked.empty()) complete(*transaction);
        return;
    }
    services_.metrics.marker_retries.add();
    const bool refused = error == ErrorCode::kInvalidProducerEpoch ||
                         error == ErrorCode::kTransactionCoordinatorFenced;
    if (refused && !std::exchange(ending.refusal_told, true)) {
        // Apache stops here, as if a newer coordinator had the id; but then this slot is closed.
        base::log::warn("coordinator",
                        "transaction of '{}': {}-{} has a newer producer or coordinator epoch than "
                        "its marker, which is sent again until it is taken",
                        transaction->metadata.transactional_id, partition.topic,
                        partition.partition);
    }
    ending.failed.push_back(partition);
    if (ending.retry.armed()) return;
    services_.timers.arm(ending.retry, services_.clock.now() + ending.pauses.next(),
                         [this, transaction] {
                             const auto failed = std::exchange(transaction->ending->failed, {});
                             send_markers(transaction, failed);
                         });
}

void TransactionSlot::complete(Transaction& transaction) {
    auto& metadata = transaction.metadata;
    metadata.previous_producer_id = metadata.producer.id;
    if (metadata.next_producer_id != base::kNoProducerId) {
        metadata.producer = {metadata.next_producer_id, base::ProducerEpoch(0)};
        metadata.next_producer_id = base::kNoProducerId;
    }
    metadata.state =
        metadata.state == State::kPrepareCommit ? State::kCompleteCommit : State::kCompleteAbort;
    metadata.partitions.clear();
    metadata.update_ms = services_.clock.wall_ms();
    keep(metadata);
    // Nobody waits for it, but a crash should not find markers to repeat.
    services_.writer.settle([](bool) {});

    const auto ending = std::exchange(transaction.ending, nullptr);
    for (auto& held : ending->held) services_.timers.cancel(held.patience);
    while (!ending->held.empty()) {
        auto go = std::move(ending->held.front().go);
        ending->held.pop_front();
        go(Wake::kEnded);
    }
}

bool TransactionSlot::has_timed_out(const TransactionMetadata& metadata) const {
    return metadata.state == State::kOngoing && metadata.times_out() &&
           metadata.start_ms < services_.clock.wall_ms() - metadata.timeout_ms;
}

void TransactionSlot::arm_abort_timer() {
    if (abort_timer_.armed()) return;
    services_.timers.arm(abort_timer_, services_.clock.now() + services_.config.abort_interval,
                         [this] { abort_timed_out_ones(); });
}

void TransactionSlot::abort_timed_out_ones() {
    std::vector<TransactionPtr> late;
    bool any_ongoing = false;
    for (const auto& [id, transaction] : transactions_) {
        any_ongoing |= transaction->metadata.state == State::kOngoing;
        if (has_timed_out(transaction->metadata)) late.push_back(transaction);
    }
    if (any_ongoing) arm_abort_timer();
    for (const auto& transaction : late) abort_timed_out(transaction, std::nullopt);
}

void TransactionSlot::abort_timed_out(const TransactionPtr& transaction,
                                      std::optional<base::ProducerId> fresh_id) {
    if (!has_timed_out(transaction->metadata)) return;  // it ended while we waited for an id
    if (transaction->metadata.exhausted() && !fresh_id) {
        services_.producer_ids.next_producer_id([this, life = std::weak_ptr(life_), transaction](
                                                    std::expected<base::ProducerId, ErrorCode> id) {
            // Without an id, the next look is soon enough.
            if (!life.expired() && !closed_ && id) abort_timed_out(transaction, *id);
        });
        return;
    }
    services_.metrics.timed_out.add();
    // With the epoch bumped the producer is fenced, whatever protocol it speaks (KIP-890).
    prepare(transaction, {.commit = false, .version = kEpochBump, .next_id = fresh_id});
}

}  // namespace kaas::coordinator
