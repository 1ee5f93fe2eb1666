#pragma once

#include "broker/call.h"
#include "broker/peers/remote_verification.h"
#include "coordinator/done.h"
#include "wire/error_code.h"

#include <vector>

namespace kaas::broker {

/// Asks the transaction's coordinator, wherever it is. `done` runs on the call's reactor, with an
/// error for each partition, in order: as `TransactionSlot::add_partitions` and
/// `verify_partitions`, in words for who writes; COORDINATOR_NOT_AVAILABLE, where there is none;
/// NETWORK_EXCEPTION, where it did not answer.
void verify_transaction(const Call& call, VerificationRequest request,
                        coordinator::Done<std::vector<wire::ErrorCode>> done);

}  // namespace kaas::broker
