#pragma once

#include "broker/call.h"
#include "wire/messages/broker_registration.h"

namespace kaas::broker {

/// BrokerRegistration (62), on the internal listener: a broker joins, or introduces itself to a new
/// controller. What kaas needs is in a tagged field (cluster/link_messages.h).
void broker_registration(CallPtr call, wire::BrokerRegistrationRequest request);

}  // namespace kaas::broker
