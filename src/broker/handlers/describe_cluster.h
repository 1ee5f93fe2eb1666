#pragma once

#include "broker/call.h"
#include "wire/messages/describe_cluster.h"

namespace kaas::broker {

/// DescribeCluster (60, KIP-700): the brokers of the listener that was asked. Controllers are no
/// endpoints of ours: asking for them gets the error that Apache's brokers give (KIP-919).
[[nodiscard]] wire::DescribeClusterResponse describe_cluster(
    const Call& call, const wire::DescribeClusterRequest& request);

}  // namespace kaas::broker
