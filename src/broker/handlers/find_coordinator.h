#pragma once

#include "broker/call.h"
#include "wire/messages/find_coordinator.h"

namespace kaas::broker {

/// FindCoordinator (10). No coordinator exists yet: every known type of key gets the retriable
/// COORDINATOR_NOT_AVAILABLE, in the one-key form before version 4 and per key from then on
/// (KIP-699).
[[nodiscard]] wire::FindCoordinatorResponse find_coordinator(
    const Call& call, const wire::FindCoordinatorRequest& request);

}  // namespace kaas::broker
