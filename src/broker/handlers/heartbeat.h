#pragma once

#include "broker/call.h"
#include "wire/messages/heartbeat.h"

namespace kaas::broker {

/// Heartbeat (12), answered by the coordinator of the group.
void heartbeat(CallPtr call, wire::HeartbeatRequest request);

}  // namespace kaas::broker
