#pragma once

#include "broker/call.h"
#include "wire/messages/add_offsets_to_txn.h"

namespace kaas::broker {

/// AddOffsetsToTxn (25): the offsets of a consumer group become part of a transaction (KIP-98).
void add_offsets_to_txn(CallPtr call, wire::AddOffsetsToTxnRequest request);

}  // namespace kaas::broker
