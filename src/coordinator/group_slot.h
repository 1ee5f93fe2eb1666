#pragma once

#include "base/clock.h"
#include "base/ids.h"
#include "base/timer_queue.h"
#include "base/uuid.h"
#include "catalog/error.h"
#include "catalog/model.h"
#include "coordinator/classic_protocol.h"
#include "coordinator/group.h"
#include "coordinator/group_config.h"
#include "coordinator/group_journal.h"
#include "coordinator/group_metrics.h"
#include "coordinator/group_offsets.h"
#include "coordinator/group_requests.h"
#include "coordinator/group_table.h"
#include "coordinator/slot_machine.h"
#include "coordinator/slot_writer.h"
#include "coordinator/transactional_producers.h"
#include "storage/producer_state.h"
#include "storage/transaction_marker.h"

#include <boost/json/object.hpp>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
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
              const GroupConfig& config, GroupMetrics& metrics,
              ClassicProtocol::NewId new_id = &base::Uuid::random);
    ~GroupSlot() override;

    [[nodiscard]] catalog::Result<void> load_picture(const boost::json::object& picture) override;
    [[nodiscard]] catalog::Result<void> load_change(const boost::json::object& change) override;
    void start() override;
    [[nodiscard]] boost::json::object picture() const override;
    void close() override;

    void join(JoinGroupRequest request, Done<JoinGroupAnswer> done);
    void sync(SyncGroupRequest request, Done<SyncGroupAnswer> done);
    void heartbeat(const HeartbeatRequest& request, Done<ErrorCode> done);
    void leave(const LeaveGroupRequest& request, Done<LeaveGroupAnswer> done);

    void commit(OffsetCommitRequest request, Done<OffsetCommitAnswer> done);
    void fetch(OffsetFetchRequest request, Done<OffsetFetchAnswer> done);
    void delete_offsets(OffsetDeleteRequest request, Done<OffsetDeleteAnswer> done);

    void describe(const std::vector<std::string>& group_ids, Done<DescribeGroupsAnswer> done);
    void list(const ListGroupsRequest& request, Done<ListGroupsAnswer> done);
    void delete_groups(const std::vector<std::string>& group_ids, Done<DeleteGroupsAnswer> done);

    /// What a transactional commit is asked for first, as a partition asks the first batch of a
    /// transaction (KIP-890): a guard means that the transaction coordinator is to be asked.
    /// Errors: INVALID_PRODUCER_EPOCH.
    [[nodiscard]] std::expected<CommitVerification, ErrorCode> begin_verification(
        base::ProducerId producer, base::ProducerEpoch epoch);
    /// Keeps offsets that count once the producer's transaction is committed. Errors, for all
    /// partitions: as `commit`, and INVALID_PRODUCER_EPOCH, INVALID_TXN_STATE; NOT_COORDINATOR when
    /// it was verified under another leadership of the slot.
    void commit_in_transaction(TxnOffsetCommitRequest request, Done<OffsetCommitAnswer> done);
    /// Ends a producer's transaction in all groups of the slot, as WriteTxnMarkers asks.
    /// Answers: NONE, also when there was none; INVALID_PRODUCER_EPOCH,
    /// TRANSACTION_COORDINATOR_FENCED, NOT_COORDINATOR.
    void end_transaction(const storage::Marker& marker, Done<ErrorCode> done);

    /// Offsets of topics that are gone go with them.
    void topics_deleted(const std::vector<DeletedTopic>& topics);
    /// The same for topics that went while nobody led the slot: `exists` knows those that did not.
    void keep_topics(const std::function<bool(const base::TopicId&)>& exists);

    /// Shows each committed offset, for whoever computes lag, until `visit` says false.
    struct CommittedOffset {
        std::string_view group_id;
        std::string_view topic;
        base::TopicId topic_id;  ///< zero if it is not known
        base::PartitionId partition;
        base::Offset offset;
    };
    void visit_offsets(const std::function<bool(const CommittedOffset&)>& visit) const;

private:
    [[nodiscard]] catalog::Result<void> load_group(const boost::json::object& object);
    [[nodiscard]] catalog::Result<void> load_pending(Group& group,
                                                     const boost::json::object& object);
    [[nodiscard]] catalog::Result<void> load_producer(const boost::json::object& object);
    [[nodiscard]] catalog::Result<void> load_commit(const boost::json::object& object);
    [[nodiscard]] catalog::Result<void> load_deletion(const boost::json::object& object);
    [[nodiscard]] catalog::Result<void> load_transaction_end(const boost::json::object& object);
    void load_stored(Group& group, Group::Stored stored, const boost::json::object& object);

    void put(Group& group, std::string_view topic, base::PartitionId partition, OffsetEntry entry);
    void remove_offset(Group& group, std::string_view topic, base::PartitionId partition);
    void end(const storage::Marker& marker, std::int64_t now_ms);
    void erase(Group& group);

    [[nodiscard]] DescribedGroup describe(const std::string& group_id) const;
    [[nodiscard]] ErrorCode check_commit(Group* group, const OffsetCommitRequest& request) const;
    [[nodiscard]] ErrorCode check_commit(Group* group, const TxnOffsetCommitRequest& request);
    [[nodiscard]] ErrorCode check_size(const std::string& group_id,
                                       const std::vector<CommitTopic>& topics) const;
    [[nodiscard]] ErrorCode check_committer(Group& group, const MemberIdentity& member,
                                            std::int32_t generation, bool in_transaction) const;
    [[nodiscard]] static OffsetFetchAnswer::Topic fetch_topic(
        const Group* group, bool require_stable, const OffsetFetchRequest::Topic& asked);
    [[nodiscard]] static std::vector<OffsetFetchAnswer::Topic> fetch_all(const Group& group,
                                                                         bool require_stable);
    /// Shows `see` what may be committed, marks in `answer` what may not, writes the line.
    void write(const CommitHead& head, const std::string& group_id,
               std::vector<CommitTopic>& topics, OffsetCommitAnswer& answer, const SeeOffset& see);
    /// Removes offsets of a group, with what waits for them.
    using Places = std::set<std::pair<std::string, base::PartitionId>>;
    void remove(Group& group, const Places& places);
    void sweep(const std::function<bool(const std::string& topic, const OffsetEntry& entry)>& goes);

    void clean_up();
    /// Returns whether nothing is left to wait for.
    [[nodiscard]] bool expire_offsets(Group& group);
    void arm_clean_up();

    SlotWriter& writer_;
    base::TimerQueue& timers_;
    const base::Clock& clock_;
    const GroupConfig& config_;
    GroupMetrics& metrics_;
    GroupTable groups_;
    ClassicProtocol classic_;
    TransactionalProducers producers_;
    const std::uint64_t leadership_;  ///< no two of a process are the same
    std::int64_t offsets_ = 0;        ///< as the gauge counts them
    base::TimerQueue::Entry clean_up_timer_{};
    catalog::UnknownKeys unknown_{};
};

}  // namespace kaas::coordinator
