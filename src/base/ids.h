#pragma once

#include "base/strong.h"
#include "base/uuid.h"

#include <cstdint>

/// The identities and positions that Kafka's protocol and our files speak of.
namespace kaas::base {

/// Position of a record in a partition.
using Offset = Strong<struct OffsetTag, std::int64_t>;
/// Number of a leadership of one partition or slot; grows by every move (KIP-101).
using LeaderEpoch = Strong<struct LeaderEpochTag, std::int32_t>;
/// Index of a partition within its topic.
using PartitionId = Strong<struct PartitionIdTag, std::int32_t>;
/// `node.id` of a broker.
using BrokerId = Strong<struct BrokerIdTag, std::int32_t>;
/// Number of a controller's reign (DESIGN 10).
using ControllerEpoch = Strong<struct ControllerEpochTag, std::int32_t>;
/// Identity of an idempotent or transactional producer (KIP-98).
using ProducerId = Strong<struct ProducerIdTag, std::int64_t>;
using ProducerEpoch = Strong<struct ProducerEpochTag, std::int16_t>;

/// A topic's identity; its name may be used again by another topic (KIP-516).
struct TopicId {
    Uuid uuid;
    friend auto operator<=>(const TopicId&, const TopicId&) = default;
};

/// 128 random bits that name one life of a broker on one volume (DESIGN 9).
struct Incarnation {
    Uuid uuid;
    friend auto operator<=>(const Incarnation&, const Incarnation&) = default;
};

struct TopicPartition {
    TopicId topic;
    PartitionId partition;
    friend auto operator<=>(const TopicPartition&, const TopicPartition&) = default;
};

inline constexpr ProducerId kNoProducerId{-1};
inline constexpr ProducerEpoch kNoProducerEpoch{-1};
inline constexpr LeaderEpoch kNoLeaderEpoch{-1};

}  // namespace kaas::base

template <>
struct std::hash<kaas::base::TopicId> {
    std::size_t operator()(const kaas::base::TopicId& id) const noexcept {
        return std::hash<kaas::base::Uuid>{}(id.uuid);
    }
};

template <>
struct std::hash<kaas::base::TopicPartition> {
    std::size_t operator()(const kaas::base::TopicPartition& id) const noexcept {
        return std::hash<kaas::base::TopicId>{}(id.topic) * 31 +
               static_cast<std::size_t>(id.partition.value());
    }
};
