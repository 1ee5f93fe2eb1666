#pragma once

#include "broker/call.h"
#include "wire/messages/describe_groups.h"

namespace kaas::broker {

/// DescribeGroups (15), answered by the coordinator of the group, each its own.
void describe_groups(CallPtr call, wire::DescribeGroupsRequest request);

}  // namespace kaas::broker
