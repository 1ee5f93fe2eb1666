#pragma once

#include "base/clock.h"
#include "base/ids.h"
#include "base/timer_queue.h"
#include "catalog/error.h"
#include "coordinator/group_config.h"
#include "coordinator/group_metrics.h"
#include "coordinator/group_requests.h"
#include "coordinator/slot_machine.h"
#include "coordinator/slot_writer.h"
#include "storage/producer_state.h"
#include "storage/transaction_marker.h"

#include <boost/json/object.hpp>

#include <expected>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace kaas::coordinator {

/// The consumer groups of one slot with their offsets (Apache `GroupCoordinatorShard`): the classic
/// protocol of Kafka's consumers, Connect and Streams, and offsets that producers commit with their
/// transactions.
///
/// Every `Done` runs exactly once, perhaps within the call. Whatever others build on is answered
/// once it is durable and the leadership was checked after the request; what only tells a member to
/// come back is answered at once. Thread: the coordinators' loop (`SlotMachine` names the
/// exceptions). All that is passed by reference outlives the slot.
class GroupSlot final : public SlotMachine {
public:
    GroupSlot(SlotWriter& writer, base::TimerQueue& timers, const base::Clock& clock,
              const GroupConfig& config, GroupMetrics& metrics);
    ~GroupSlot() override;

    [[nodiscard]] catalog::Result<void> load_picture(const boost::json::object& picture) override;
    [[nodiscard]] catalog::Result<void> load_change(const boost::json::object& change) override;
    void start() override;
    [[nodiscard]] boost::json::object picture() const override;
    void close() override;

    void join(JoinGroupRequest request, Done<JoinGroupAnswer> done);
    void sync(SyncGroupRequest request, Done<SyncGroupAnswer> done);
    void heartbeat(const HeartbeatRequest& request, Done<ErrorCode> done);
    void leave(LeaveGroupRequest request, Done<LeaveGroupAnswer> done);

    void commit(OffsetCommitRequest request, Done<OffsetCommitAnswer> done);
    void fetch(OffsetFetchRequest request, Done<OffsetFetchAnswer> done);
    void delete_offsets(OffsetDeleteRequest request, Done<OffsetDeleteAnswer> done);

    void describe(const std::vector<std::string>& group_ids, Done<DescribeGroupsAnswer> done);
    void list(const ListGroupsRequest& request, Done<ListGroupsAnswer> done);
    void delete_groups(const std::vector<std::string>& group_ids, Done<DeleteGroupsAnswer> done);

    /// What a transactional commit is asked for first, as a partition asks the first batch of a
    /// transaction (KIP-890): a guard means that the transaction coordinator is to be asked.
    /// Errors: INVALID_PRODUCER_EPOCH.
    [[nodiscard]] std::expected<storage::Verification, ErrorCode> begin_verification(
        base::ProducerId producer, base::ProducerEpoch epoch);
    /// Keeps offsets that count once the producer's transaction is committed. Errors, for all
    /// partitions: as `commit`, and INVALID_PRODUCER_EPOCH, INVALID_TXN_STATE.
    void commit_in_transaction(TxnOffsetCommitRequest request, Done<OffsetCommitAnswer> done);
    /// Ends a producer's transaction in all groups of the slot, as WriteTxnMarkers asks.
    /// Answers: NONE, also when there was none; INVALID_PRODUCER_EPOCH,
    /// TRANSACTION_COORDINATOR_FENCED, NOT_COORDINATOR.
    void end_transaction(const storage::Marker& marker, Done<ErrorCode> done);

    /// Offsets of topics that are gone go with them.
    void topics_deleted(const std::vector<DeletedTopic>& topics);
    /// The same for topics that went while nobody led the slot: `exists` knows those that did not.
    void keep_topics(const std::function<bool(const base::TopicId&)>& exists);

    /// Shows each committed offset, for whoever computes lag.
    struct CommittedOffset {
        std::string_view group_id;
        std::string_view topic;
        base::TopicId topic_id;  ///< zero if it is not known
        base::PartitionId partition;
        base::Offset offset;
    };
    void visit_offsets(const std::function<void(const CommittedOffset&)>& visit) const;

private:
    SlotWriter& writer_;
    base::TimerQueue& timers_;
    const base::Clock& clock_;
    const GroupConfig& config_;
    GroupMetrics& metrics_;
};

}  // namespace kaas::coordinator
