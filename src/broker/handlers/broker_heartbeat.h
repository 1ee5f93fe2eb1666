#pragma once

#include "broker/call.h"
#include "wire/messages/broker_heartbeat.h"

namespace kaas::broker {

/// BrokerHeartbeat (63), on the internal listener: a broker reports, or waits for news of the
/// controller. What kaas needs is in a tagged field (cluster/link_messages.h).
void broker_heartbeat(CallPtr call, wire::BrokerHeartbeatRequest request);

}  // namespace kaas::broker
