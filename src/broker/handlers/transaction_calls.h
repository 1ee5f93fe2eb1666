#pragma once

#include "broker/call.h"
#include "broker/handlers/slot_calls.h"
#include "coordinator/transaction_requests.h"
#include "coordinator/transaction_slot.h"
#include "wire/error_code.h"

#include <string_view>

/// What handlers of the transactional APIs share.
namespace kaas::broker {

/// Who was fenced hears so by a code that clients of older versions know (KIP-588).
[[nodiscard]] inline wire::ErrorCode fencing_error(wire::ErrorCode error, bool knows_fencing) {
    const bool replaced = error == wire::ErrorCode::kProducerFenced && !knows_fencing;
    return replaced ? wire::ErrorCode::kInvalidProducerEpoch : error;
}

/// What a group's offsets are to a transaction.
[[nodiscard]] coordinator::TransactionPartition group_slot_of(const Call& call,
                                                              std::string_view group_id);

}  // namespace kaas::broker
