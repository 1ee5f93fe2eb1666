#pragma once

#include "broker/call.h"
#include "wire/messages/sasl_handshake.h"

namespace kaas::broker {

/// SaslHandshake (17): the client names the mechanism by which it will authenticate (KIP-43). The
/// only one is SCRAM-SHA-512, for brokers. Tokens come in SaslAuthenticate, also after version 0,
/// which Apache follows up with bare ones.
void sasl_handshake(CallPtr call, wire::SaslHandshakeRequest request);

}  // namespace kaas::broker
