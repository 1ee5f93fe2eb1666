#pragma once

#include "broker/call.h"
#include "wire/messages/describe_topic_partitions.h"

namespace kaas::broker {

/// DescribeTopicPartitions (75, KIP-966): topics by name in order, as many partitions as the asker
/// and `max.request.partition.size.limit` allow, and a cursor to go on from. No topics means all.
[[nodiscard]] wire::DescribeTopicPartitionsResponse describe_topic_partitions(
    const Call& call, const wire::DescribeTopicPartitionsRequest& request);

}  // namespace kaas::broker
