#pragma once

#include "broker/call.h"
#include "wire/messages/add_partitions_to_txn.h"

namespace kaas::broker {

/// AddPartitionsToTxn (24): what a transaction is about to write to (KIP-98). From version 4 on
/// brokers ask so for their producers, for many transactions at once, or ask only whether a
/// partition was added (KIP-890).
void add_partitions_to_txn(CallPtr call, wire::AddPartitionsToTxnRequest request);

}  // namespace kaas::broker
