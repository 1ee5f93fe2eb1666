#pragma once

#include "broker/call.h"
#include "wire/messages/describe_transactions.h"

namespace kaas::broker {

/// DescribeTransactions (65): what coordinators know of transactional ids (KIP-664).
void describe_transactions(CallPtr call, wire::DescribeTransactionsRequest request);

}  // namespace kaas::broker
