#pragma once

#include "base/ids.h"
#include "catalog/change.h"
#include "catalog/image.h"

#include <vector>

/// Who should lead instead of those who do: pure functions of an image.
///
/// A move takes the leadership of a partition to another broker, on the same volume: nothing is
/// copied. What is asked back already counts for the broker that it will go to. A draining broker
/// gives everything back by itself, so it has no part in plans.
namespace kaas::cluster {

struct Move {
    base::TopicPartition partition;
    base::BrokerId from;  ///< leads it, under whatever epoch
    base::BrokerId to;
    /// Of the partition, once `to` leads. So the aim stands in the image before the epoch is asked
    /// back, and `LeaderChoice` finds it there, whoever is controller by then.
    std::vector<base::BrokerId> replicas;
};

struct Evening {
    std::vector<Move> moves;
    /// Lists of partitions that stay with their leaders, which become the preferred ones. Else a
    /// repair would undo what is even, and the next evening the repair.
    std::vector<catalog::ReplicaList> lists;
};

/// Brings leaderships even: those of each topic, and those of all topics together, differ by one at
/// most between brokers. As few moves as greedy choice finds, and of those rather the ones to the
/// preferred leader, then those within the replicas; `to` becomes the preferred leader. Each kind
/// of slots is a topic of its own and counts apart from records. Brokers that can take different
/// volumes are even among those that can take the same. Empty when all is even.
[[nodiscard]] Evening plan_moves(const catalog::Image& image);

/// Brings all partitions back to their preferred leaders, as Apache's controller does.
[[nodiscard]] std::vector<Move> plan_repair(const catalog::Image& image);

/// Moves that partitions with a target wait for, and nobody has begun.
[[nodiscard]] std::vector<Move> plan_targets(const catalog::Image& image);

}  // namespace kaas::cluster
