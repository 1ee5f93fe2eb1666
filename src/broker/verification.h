#pragma once

#include "broker/call.h"
#include "coordinator/done.h"
#include "coordinator/transaction_requests.h"
#include "wire/error_code.h"

#include <string>
#include <vector>

namespace kaas::broker {

/// What the leader of partitions, or of a group, asks the transaction coordinator before it takes
/// the first of a transaction (KIP-890; Apache `AddPartitionsToTxnManager`).
struct VerificationRequest {
    std::string transactional_id;
    coordinator::ProducerIdAndEpoch producer;
    std::vector<coordinator::TransactionPartition> partitions;
    bool adds = false;             ///< the partitions become part of the transaction with it
    bool knows_abortable = false;  ///< the client, TRANSACTION_ABORTABLE
};

/// `done` runs on the call's reactor, with an error for each partition, in order: as
/// `TransactionSlot::add_partitions` and `verify_partitions`, in words for who writes.
void verify_transaction(const Call& call, VerificationRequest request,
                        coordinator::Done<std::vector<wire::ErrorCode>> done);

}  // namespace kaas::broker
