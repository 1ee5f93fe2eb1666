#pragma once

#include "broker/call.h"
#include "broker/coordination/coordination.h"
#include "coordinator/done.h"
#include "coordinator/transaction_requests.h"
#include "coordinator/transaction_slot.h"
#include "wire/error_code.h"

#include <expected>
#include <string_view>
#include <utility>

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

[[nodiscard]] inline wire::ErrorCode refusal(wire::ErrorCode error, const wire::ErrorCode*) {
    return error;
}
template <class Answer>
[[nodiscard]] Answer refusal(wire::ErrorCode error, const Answer*) {
    Answer answer{};
    answer.error = error;
    return answer;
}

/// Has `ask(slot, done)` ask the slot of a transactional id on the coordinators' loop; `done` runs
/// on the call's reactor. Without such a slot here it gets `refused(error)`: NOT_COORDINATOR,
/// COORDINATOR_LOAD_IN_PROGRESS.
template <class Answer, class Ask, class Refused>
void ask_transactions(const Call& call, std::string_view transactional_id, Ask ask,
                      coordinator::Done<Answer> done, Refused refused) {
    call.services().coordination.with_transaction(
        call.state().partitions.image(), transactional_id,
        [ask = std::move(ask), done = brought_home(call.home(), std::move(done)),
         refused = std::move(refused)](auto slot) mutable {
            if (!slot) return done(refused(slot.error()));
            ask(**slot, std::move(done));
        });
}
template <class Answer, class Ask>
void ask_transactions(const Call& call, std::string_view transactional_id, Ask ask,
                      coordinator::Done<Answer> done) {
    ask_transactions<Answer>(
        call, transactional_id, std::move(ask), std::move(done),
        [](wire::ErrorCode error) { return refusal(error, static_cast<const Answer*>(nullptr)); });
}

}  // namespace kaas::broker
