#pragma once

#include "broker/call.h"
#include "wire/messages/envelope.h"

namespace kaas::broker {

/// Envelope (58, KIP-590), on the internal listener: a client's request that another broker passes
/// on to the controller.
void envelope(CallPtr call, wire::EnvelopeRequest request);

}  // namespace kaas::broker
