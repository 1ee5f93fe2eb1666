#pragma once

#include "broker/call.h"
#include "wire/messages/txn_offset_commit.h"

namespace kaas::broker {

/// TxnOffsetCommit (28): offsets of a consumer group that count once the producer's transaction is
/// committed (KIP-98), fenced by the group's generation (KIP-447). From version 5 on the group
/// becomes part of the transaction with it (KIP-890).
void txn_offset_commit(CallPtr call, wire::TxnOffsetCommitRequest request);

}  // namespace kaas::broker
