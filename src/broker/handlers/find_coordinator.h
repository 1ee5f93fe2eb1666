#pragma once

#include "broker/call.h"
#include "wire/messages/find_coordinator.h"

namespace kaas::broker {

/// FindCoordinator (10): the leader of the slot that a group's or transaction's id falls on, as the
/// asker's listener reaches it. One key before version 4, any number from then on (KIP-699). The
/// first to look for a coordinator waits until its slots are served. There are no share
/// coordinators (KIP-932): their keys get COORDINATOR_NOT_AVAILABLE.
void find_coordinator(CallPtr call, wire::FindCoordinatorRequest request);

}  // namespace kaas::broker
