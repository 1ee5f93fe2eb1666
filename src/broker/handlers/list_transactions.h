#pragma once

#include "broker/call.h"
#include "wire/messages/list_transactions.h"

namespace kaas::broker {

/// ListTransactions (66): those of this broker's coordinators, by filters (KIP-664, KIP-994,
/// KIP-1152).
void list_transactions(CallPtr call, wire::ListTransactionsRequest request);

}  // namespace kaas::broker
