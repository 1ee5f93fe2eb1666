#include "broker/handlers/end_txn.h"

#include "base/ids.h"
#include "base/utf8.h"
#include "broker/handlers/transaction_calls.h"
#include "coordinator/transaction_requests.h"
#include "coordinator/transaction_slot.h"

#include <cstdint>
#include <utility>

namespace kaas::broker {
namespace {

using coordinator::EndTxnAnswer;
using wire::ErrorCode;

constexpr std::int16_t kFencesFrom = 2;
constexpr std::int16_t kBumpsFrom = 5;

void answer(Call& call, const EndTxnAnswer& answer) {
    wire::EndTxnResponse response;
    response.error_code = fencing_error(answer.error, call.version() >= kFencesFrom);
    response.producer_id = answer.producer.id.value();
    response.producer_epoch = answer.producer.epoch.value();
    call.answer(response);
}

}  // namespace

void end_txn(CallPtr call, wire::EndTxnRequest request) {
    if (request.transactional_id.empty())
        return answer(*call, {.error = ErrorCode::kInvalidRequest});
    coordinator::EndTxnRequest asked{.transactional_id = base::to_utf8(request.transactional_id),
                                     .producer = {base::ProducerId(request.producer_id),
                                                  base::ProducerEpoch(request.producer_epoch)},
                                     .commit = request.committed,
                                     .version = call->version() >= kBumpsFrom
                                                    ? coordinator::kEpochBump
                                                    : coordinator::kFixedEpoch};
    const auto id = asked.transactional_id;
    ask_transactions<EndTxnAnswer>(
        *call, id,
        [asked = std::move(asked)](auto& slot, auto done) mutable {
            slot.end_txn(std::move(asked), std::move(done));
        },
        [call](EndTxnAnswer given) { answer(*call, given); });
}

}  // namespace kaas::broker
