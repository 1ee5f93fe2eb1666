#pragma once

#include "broker/call.h"
#include "wire/messages/fetch.h"

namespace kaas::broker {

/// Fetch (1): whole batches as they lie in the segment files, sent from there. When less than
/// `min_bytes` is at hand, the request is parked until more is durable or `max_wait_ms` has passed.
/// Sessions are KIP-227's, topic ids KIP-516's.
void fetch(CallPtr call, wire::FetchRequest request);

}  // namespace kaas::broker
