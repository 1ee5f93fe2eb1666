#pragma once

#include "broker/call.h"
#include "wire/messages/alter_partition_reassignments.h"

namespace kaas::broker {

/// AlterPartitionReassignments (45, KIP-455): edits lists of replicas, or calls that off.
void alter_partition_reassignments(CallPtr call, wire::AlterPartitionReassignmentsRequest request);

}  // namespace kaas::broker
