#pragma once

#include "broker/call.h"
#include "wire/messages/init_producer_id.h"

namespace kaas::broker {

/// InitProducerId (22) of idempotent producers (KIP-98): a new id with epoch 0. Transactional
/// producers are told that their coordinator is not available: it does not exist yet.
void init_producer_id(CallPtr call, wire::InitProducerIdRequest request);

}  // namespace kaas::broker
