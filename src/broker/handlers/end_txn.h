#pragma once

#include "broker/call.h"
#include "wire/messages/end_txn.h"

namespace kaas::broker {

/// EndTxn (26): commits or aborts. From version 5 on the producer's epoch grows with it (KIP-890).
void end_txn(CallPtr call, wire::EndTxnRequest request);

}  // namespace kaas::broker
