#pragma once

#include "broker/call.h"
#include "wire/messages/allocate_producer_ids.h"

namespace kaas::broker {

/// AllocateProducerIds (67), on the internal listener.
void allocate_producer_ids(CallPtr call, wire::AllocateProducerIdsRequest request);

}  // namespace kaas::broker
