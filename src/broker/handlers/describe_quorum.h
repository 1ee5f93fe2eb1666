#pragma once

#include "broker/call.h"
#include "wire/messages/describe_quorum.h"

namespace kaas::broker {

/// DescribeQuorum (55, KIP-595): the election, as Apache tells of its KRaft quorum. There is one
/// log, the control log, which nobody copies: a broker's end offset is the number of changes of
/// this reign that it has applied and asks to follow. Voters are the brokers that may stand: those
/// that live and do not drain; who drains observes. Source: Apache `KafkaRaftClient`, `RaftUtil`.
[[nodiscard]] wire::DescribeQuorumResponse describe_quorum(
    const Call& call, const wire::DescribeQuorumRequest& request);

}  // namespace kaas::broker
