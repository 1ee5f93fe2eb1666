#pragma once

#include "broker/call.h"
#include "wire/messages/init_producer_id.h"

namespace kaas::broker {

/// InitProducerId (22): a new id with epoch 0 for idempotent producers (KIP-98), what the
/// coordinator of its transactional id gives for transactional ones (KIP-360).
void init_producer_id(CallPtr call, wire::InitProducerIdRequest request);

}  // namespace kaas::broker
