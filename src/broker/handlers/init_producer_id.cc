#include "broker/handlers/init_producer_id.h"

#include "base/utf8.h"
#include "broker/handlers/transaction_calls.h"
#include "coordinator/transaction_requests.h"
#include "coordinator/transaction_slot.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>

namespace kaas::broker {
namespace {

using coordinator::InitProducerIdAnswer;
using wire::ErrorCode;

constexpr std::int16_t kFencesFrom = 4;

void answer(Call& call, const InitProducerIdAnswer& answer) {
    wire::InitProducerIdResponse response;
    response.error_code = fencing_error(answer.error, call.version() >= kFencesFrom);
    response.producer_id = answer.producer.id.value();
    response.producer_epoch = answer.producer.epoch.value();
    call.answer(response);
}

void init_transactional(CallPtr call, const wire::InitProducerIdRequest& request) {
    coordinator::InitProducerIdRequest asked{
        .transactional_id = base::to_utf8(*request.transactional_id),
        .transaction_timeout = std::chrono::milliseconds(request.transaction_timeout_ms),
        .enable_two_phase_commit = request.enable2_pc,
        .keep_prepared = request.keep_prepared_txn};
    if (request.producer_id != -1) {
        asked.current = {base::ProducerId(request.producer_id),
                         base::ProducerEpoch(request.producer_epoch)};
    }
    // What no coordinator would take is refused wherever the id's coordinator is, as in Apache.
    const auto& config = call->services().coordination.transaction_config();
    if (const auto error = coordinator::TransactionSlot::check(asked, config);
        error != ErrorCode::kNone)
        return answer(*call, {.error = error});
    const auto id = asked.transactional_id;
    ask_transactions<InitProducerIdAnswer>(
        *call, id,
        [asked = std::move(asked)](auto& slot, auto done) mutable {
            slot.init_producer_id(std::move(asked), std::move(done));
        },
        [call](InitProducerIdAnswer given) { answer(*call, given); });
}

}  // namespace

void init_producer_id(CallPtr call, wire::InitProducerIdRequest request) {
    // Apache's order: an id and an epoch come together or not at all.
    if ((request.producer_id == -1) != (request.producer_epoch == -1))
        return answer(*call, {.error = ErrorCode::kInvalidRequest});
    if (request.transactional_id) return init_transactional(std::move(call), request);
    auto& home = call->home();
    auto& ids = call->services().producer_ids;
    ids.next(home, [call = std::move(call)](cluster::Result<base::ProducerId> id) {
        // Clients repeat this one, whatever their age. Apache: RPCProducerIdManager, without a
        // block from its controller.
        if (!id) return answer(*call, {.error = ErrorCode::kCoordinatorLoadInProgress});
        answer(*call, {.producer = {*id, base::ProducerEpoch(0)}});
    });
}

}  // namespace kaas::broker
