#pragma once

#include "broker/call.h"
#include "wire/messages/unregister_broker.h"

namespace kaas::broker {

/// UnregisterBroker (64): a broker that is gone is forgotten, a living one gives back what it
/// leads.
void unregister_broker(CallPtr call, wire::UnregisterBrokerRequest request);

}  // namespace kaas::broker
