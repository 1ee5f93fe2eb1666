#pragma once

#include "base/clock.h"
#include "base/executor.h"
#include "base/ids.h"
#include "base/uuid.h"
#include "catalog/config_map.h"
#include "catalog/slot.h"
#include "cluster/error.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

/// What a broker may ask of the controller, and what it answers.
namespace kaas::cluster {

/// Where an answer goes: `done` runs once, on `home`.
template <class T>
struct Reply {
    base::Executor* home = nullptr;
    std::move_only_function<void(Result<T>)> done;

    void operator()(Result<T> result) && {
        home->post([run = std::move(done), value = std::move(result)]() mutable {
            run(std::move(value));
        });
    }
};

/// How the topic of one kind of slots is made, where a request does not say.
struct SlotTopic {
    std::int32_t slots = 50;
    std::int16_t replication_factor = 3;
    catalog::ConfigMap configs{};
};

/// How leaderships move by themselves.
struct BalanceConfig {
    /// Epochs asked back that are not yet released: each such partition is served by nobody for
    /// some milliseconds.
    std::size_t moves_under_way = 64;
    bool repair = true;                        ///< `auto.leader.rebalance.enable`
    std::chrono::seconds check_interval{300};  ///< `leader.imbalance.check.interval.seconds`
};

/// Which request this is. A controller may die between what it did and its answer; the broker in
/// between asks the next one, which must neither do it twice nor refuse what was done.
struct Attempt {
    base::Uuid request{};  ///< zero: nobody would ask again
    bool again = false;    ///< an earlier one may have been done
};

/// What the cluster's configuration says to the controller.
struct ControllerConfig {
    std::int32_t default_partitions = 1;          ///< `num.partitions`
    std::int16_t default_replication_factor = 1;  ///< `default.replication.factor`
    std::map<catalog::SlotKind, SlotTopic> slot_topics{};
    /// Where slots lie: the volume with the cluster's own files.
    std::string slot_volume{};
    BalanceConfig balance{};
    /// Why these configs cannot be a topic's, in Apache's words; absent when they can.
    std::function<std::optional<std::string>(const catalog::ConfigMap&)> topic_config_fault{};
};

/// Replicas of partition `index`, preferred leader first.
struct ManualAssignment {
    std::int32_t index = 0;
    std::vector<base::BrokerId> brokers;
};

struct NewTopic {
    std::string name;
    std::int32_t partitions = -1;          ///< -1: the default, or as `assignments` say
    std::int16_t replication_factor = -1;  ///< -1: the default, or as `assignments` say
    std::vector<ManualAssignment> assignments{};
    /// A value may be null on the wire, which Apache refuses.
    std::vector<std::pair<std::string, std::optional<std::string>>> configs{};
};

/// CreateTopics (19), and topics made on demand: for Metadata (3), or because a coordinator is
/// looked for.
struct CreateTopics {
    std::vector<NewTopic> topics;
    bool validate_only = false;
    /// When the client stops waiting: topics whose brokers have not all heard of them by then are
    /// answered with kRequestTimedOut, though they exist.
    base::Clock::Steady deadline = base::Clock::Steady::max();
    Attempt attempt{};
};
struct CreatedTopic {
    std::string name;
    Result<void> outcome;
    /// Meaningful when `outcome` is good. The id is zero after validate-only.
    base::TopicId id;
    std::int32_t partitions = -1;
    std::int16_t replication_factor = -1;
    catalog::ConfigMap configs{};  ///< only those that were set
};

/// DeleteTopics (20).
struct DeleteTopics {
    std::vector<std::variant<std::string, base::TopicId>> topics;
    base::Clock::Steady deadline = base::Clock::Steady::max();
    Attempt attempt{};
};
/// As asked, with the other half filled in when it is known.
struct DeletedTopic {
    std::optional<std::string> name;
    base::TopicId id;
    Result<void> outcome;
};

/// CreatePartitions (37).
struct GrowTopic {
    std::string name;
    std::int32_t count = 0;  ///< the new total
    /// Of the new partitions, in order; absent: the balancer chooses.
    std::optional<std::vector<std::vector<base::BrokerId>>> assignments{};
};
struct CreatePartitions {
    std::vector<GrowTopic> topics;
    bool validate_only = false;
    base::Clock::Steady deadline = base::Clock::Steady::max();
    Attempt attempt{};
};
struct GrownTopic {
    std::string name;
    Result<void> outcome;
};

struct TopicIndexes {
    std::string topic;
    std::vector<std::int32_t> partitions;
};
struct PartitionOutcome {
    std::int32_t partition = 0;
    Result<void> outcome;
};
struct TopicOutcomes {
    std::string topic;
    std::vector<PartitionOutcome> partitions;
};

/// ElectLeaders (43). Good: the partition is on its way to its preferred leader.
struct ElectLeaders {
    std::int8_t type = 0;  ///< 0: preferred, 1: unclean (KIP-460)
    /// Absent: all, and those that need no election are not in the answer.
    std::optional<std::vector<TopicIndexes>> topics{};
    base::Clock::Steady deadline = base::Clock::Steady::max();
};

/// AlterPartitionReassignments (45, KIP-455).
struct ReassignPartition {
    std::int32_t partition = 0;
    std::optional<std::vector<base::BrokerId>> replicas{};  ///< absent: call it off
};
struct ReassignTopic {
    std::string name;
    std::vector<ReassignPartition> partitions;
};
struct AlterReassignments {
    std::vector<ReassignTopic> topics;
    bool allow_factor_change = true;
    base::Clock::Steady deadline = base::Clock::Steady::max();
};

/// ListPartitionReassignments (46).
struct ListReassignments {
    std::optional<std::vector<TopicIndexes>> topics{};  ///< absent: all
};
struct OngoingReassignment {
    std::int32_t partition = 0;
    std::vector<base::BrokerId> replicas;  ///< the target, then those that go
    std::vector<base::BrokerId> adding;
    std::vector<base::BrokerId> removing;
};
struct OngoingReassignments {
    std::string topic;
    std::vector<OngoingReassignment> partitions;
};

/// A change of dynamic configs whose values the asker has validated; no handler asks yet.
struct AlterConfigs {
    /// A topic's name, or a broker (kNoBroker: all).
    std::variant<std::string, base::BrokerId> resource;
    std::vector<std::pair<std::string, std::optional<std::string>>>
        values;  ///< absent: back to the default
    bool validate_only = false;
    base::Clock::Steady deadline = base::Clock::Steady::max();
};

/// A leader has given an epoch up, for ever, to lead the next one on another volume of its own
/// (DESIGN 9: a handover to itself).
struct MovedEpoch {
    base::TopicPartition partition;
    base::LeaderEpoch epoch;
    std::string volume;  ///< of the next one
};

/// `count` producer ids from `first` on, given to nobody else, ever (DESIGN 10).
struct ProducerIdBlock {
    base::ProducerId first{-1};
    std::int32_t count = 0;
};

}  // namespace kaas::cluster
