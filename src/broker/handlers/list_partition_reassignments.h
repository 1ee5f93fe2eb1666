#pragma once

#include "broker/call.h"
#include "wire/messages/list_partition_reassignments.h"

namespace kaas::broker {

/// ListPartitionReassignments (46, KIP-455): those that wait for their leader to give way.
void list_partition_reassignments(CallPtr call, wire::ListPartitionReassignmentsRequest request);

}  // namespace kaas::broker
