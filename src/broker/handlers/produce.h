#pragma once

#include "broker/call.h"
#include "wire/messages/produce.h"

namespace kaas::broker {

/// Produce (0): hands each batch to its partition's log as it stands in the frame, lets the
/// connection's next request start, and answers when the last batch is as durable as `acks` asks
/// (DESIGN 5, 7).
void produce(CallPtr call, wire::ProduceRequest request);

}  // namespace kaas::broker
