#pragma once

#include "base/ids.h"
#include "coordinator/done.h"
#include "storage/producer_state.h"
#include "wire/error_code.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// What is asked of a group coordinator and what it answers: values that own all they hold, because
/// a decoded request lives on the thread of its connection. Fields are Apache's, of the newest
/// version; what an older version lacks has the value that says so. Bytes are kept in strings.
namespace kaas::coordinator {

/// What clients without a generation say: those that assign partitions by themselves.
inline constexpr std::int32_t kNoGeneration = -1;
inline constexpr std::int32_t kNoLeaderEpochKnown = -1;

/// Who asks.
struct ClientInfo {
    std::int16_t version = 0;  ///< of the request
    std::string client_id;
    std::string client_host;  ///< as Java prints an address: "/127.0.0.1"
};

/// A member as requests of a running group name it.
struct MemberIdentity {
    std::string member_id;
    std::optional<std::string> group_instance_id{};  ///< of a static member (KIP-345)
};

/// A way to assign that a member knows, and what it tells the leader about itself.
struct MemberProtocol {
    std::string name;
    std::string metadata;

    friend bool operator==(const MemberProtocol&, const MemberProtocol&) = default;
};

struct JoinGroupRequest {
    ClientInfo client;
    std::string group_id;
    MemberIdentity member;  ///< without an id: a new member
    std::chrono::milliseconds session_timeout{};
    std::chrono::milliseconds rebalance_timeout{};
    std::string protocol_type;
    std::vector<MemberProtocol> protocols;  ///< the best one first
    std::optional<std::string> reason{};    ///< KIP-800
};
struct JoinedMember {
    MemberIdentity member;
    std::string metadata;  ///< for the protocol that was chosen
};
struct JoinGroupAnswer {
    ErrorCode error = ErrorCode::kNone;
    std::int32_t generation = kNoGeneration;
    std::optional<std::string> protocol_type{};
    std::optional<std::string> protocol_name{};
    std::string leader{};
    bool skip_assignment = false;  ///< KIP-814
    std::string member_id{};
    std::vector<JoinedMember> members{};  ///< only for the leader
};

struct SyncGroupRequest {
    std::string group_id;
    MemberIdentity member;
    std::int32_t generation = kNoGeneration;
    std::optional<std::string> protocol_type{};
    std::optional<std::string> protocol_name{};
    struct Assignment {
        std::string member_id;
        std::string assignment;
    };
    std::vector<Assignment> assignments;  ///< only from the leader
};
struct SyncGroupAnswer {
    ErrorCode error = ErrorCode::kNone;
    std::optional<std::string> protocol_type{};
    std::optional<std::string> protocol_name{};
    std::string assignment{};
};

struct HeartbeatRequest {
    std::string group_id;
    MemberIdentity member;
    std::int32_t generation = kNoGeneration;
};

struct LeaveGroupRequest {
    std::string group_id;
    struct Member {
        MemberIdentity identity;  ///< without a member id: whoever has the instance id
        std::optional<std::string> reason{};
    };
    std::vector<Member> members;
};
struct LeaveGroupAnswer {
    ErrorCode error = ErrorCode::kNone;
    struct Member {
        MemberIdentity identity;
        ErrorCode error = ErrorCode::kNone;
    };
    std::vector<Member> members{};
};

/// An offset that somebody wants kept.
struct CommitPartition {
    base::PartitionId partition;
    base::Offset offset;
    std::int32_t leader_epoch = kNoLeaderEpochKnown;
    std::optional<std::string> metadata{};
};
struct CommitTopic {
    base::TopicId id;
    std::string name;
    std::vector<CommitPartition> partitions;
};
/// The topics exist and the partitions are theirs: whoever fills this in has looked.
struct OffsetCommitRequest {
    std::int16_t version = 0;
    std::string group_id;
    MemberIdentity member;
    std::int32_t generation = kNoGeneration;
    std::optional<std::chrono::milliseconds> retention{};  ///< versions 2 to 4
    std::vector<CommitTopic> topics;
};

/// What `GroupSlot::begin_verification` says.
struct CommitVerification {
    /// What the commit is to show once the transaction coordinator was asked; empty when the
    /// transaction is open in the slot already.
    std::optional<storage::VerificationGuard> guard;
    std::uint64_t leadership = 0;  ///< of the slot, under which that is so
};
struct TxnOffsetCommitRequest {
    std::int16_t version = 0;
    std::string group_id;
    MemberIdentity member;  ///< KIP-447
    std::int32_t generation = kNoGeneration;
    base::ProducerId producer_id;
    base::ProducerEpoch producer_epoch;
    /// By what `GroupSlot::begin_verification` and the transaction coordinator let it through;
    /// empty when verification is switched off.
    std::optional<CommitVerification> verification{};
    std::vector<CommitTopic> topics;
};
struct PartitionOutcome {
    base::PartitionId partition;
    ErrorCode error = ErrorCode::kNone;
};
struct TopicOutcome {
    base::TopicId id;
    std::string name;
    std::vector<PartitionOutcome> partitions;
};
/// Both of OffsetCommit and of TxnOffsetCommit: as many topics and partitions as were asked, in
/// that order. When a group refuses, all of them carry the same error.
struct OffsetCommitAnswer {
    std::vector<TopicOutcome> topics;
};
[[nodiscard]] inline OffsetCommitAnswer all_with(const std::vector<CommitTopic>& topics,
                                                 ErrorCode error) {
    OffsetCommitAnswer answer;
    for (const auto& topic : topics) {
        auto& outcome = answer.topics.emplace_back(TopicOutcome{topic.id, topic.name, {}});
        for (const auto& one : topic.partitions)
            outcome.partitions.push_back({one.partition, error});
    }
    return answer;
}

struct OffsetFetchRequest {
    std::string group_id;
    struct Topic {
        base::TopicId id;  ///< zero: the name alone counts
        std::string name;
        std::vector<base::PartitionId> partitions;
    };
    std::optional<std::vector<Topic>> topics{};  ///< empty: all of them
    bool require_stable = false;
};
struct FetchedOffset {
    base::PartitionId partition;
    ErrorCode error = ErrorCode::kNone;
    base::Offset offset{-1};  ///< -1: none is known
    std::int32_t leader_epoch = kNoLeaderEpochKnown;
    std::string metadata{};
};
struct OffsetFetchAnswer {
    ErrorCode error = ErrorCode::kNone;
    struct Topic {
        base::TopicId id;  ///< as asked; zero when all topics were
        std::string name;
        std::vector<FetchedOffset> partitions;
    };
    std::vector<Topic> topics{};
};

struct DescribedMember {
    MemberIdentity member;
    std::string client_id;
    std::string client_host;
    std::string metadata;  ///< of a stable group
    std::string assignment;
};
struct DescribedGroup {
    ErrorCode error = ErrorCode::kNone;  ///< kGroupIdNotFound: older versions call it Dead
    std::string group_id;
    std::string state;
    std::string protocol_type{};
    std::string protocol{};
    std::vector<DescribedMember> members{};
};
using DescribeGroupsAnswer = std::vector<DescribedGroup>;

struct ListGroupsRequest {
    std::vector<std::string> states;  ///< in any case; none: all
    std::vector<std::string> types;
};
struct ListedGroup {
    std::string group_id;
    std::string protocol_type;
    std::string state;
    std::string type;
};
struct ListGroupsAnswer {
    ErrorCode error = ErrorCode::kNone;
    std::vector<ListedGroup> groups{};
};

struct DeletedGroup {
    std::string group_id;
    ErrorCode error = ErrorCode::kNone;
};
using DeleteGroupsAnswer = std::vector<DeletedGroup>;

struct OffsetDeleteRequest {
    std::string group_id;
    struct Topic {
        std::string name;
        std::vector<base::PartitionId> partitions;
    };
    std::vector<Topic> topics;
};
struct OffsetDeleteAnswer {
    ErrorCode error = ErrorCode::kNone;
    std::vector<TopicOutcome> topics{};
};

/// A topic that is gone; another one may have its name by now.
struct DeletedTopic {
    base::TopicId id;
    std::string name;
};

}  // namespace kaas::coordinator
