#pragma once

#include "broker/call.h"
#include "wire/messages/sasl_authenticate.h"

namespace kaas::broker {

/// SaslAuthenticate (36): one token of the mechanism that SaslHandshake has named (KIP-152). With
/// the last one the connection gets its principal; a failure is answered, and ends it. A session
/// has no end of its own (KIP-368): lifetime 0.
void sasl_authenticate(CallPtr call, wire::SaslAuthenticateRequest request);

}  // namespace kaas::broker
