#include "broker/handlers/add_offsets_to_txn.h"

#include "base/ids.h"
#include "base/utf8.h"
#include "broker/handlers/transaction_calls.h"
#include "coordinator/transaction_requests.h"
#include "coordinator/transaction_slot.h"

#include <cstdint>
#include <utility>

namespace kaas::broker {
namespace {

using wire::ErrorCode;

constexpr std::int16_t kFencesFrom = 2;

void answer(Call& call, ErrorCode error) {
    wire::AddOffsetsToTxnResponse response;
    response.error_code = fencing_error(error, call.version() >= kFencesFrom);
    call.answer(response);
}

}  // namespace

void add_offsets_to_txn(CallPtr call, wire::AddOffsetsToTxnRequest request) {
    if (request.transactional_id.empty()) return answer(*call, ErrorCode::kInvalidRequest);
    coordinator::AddPartitionsRequest asked{
        .transactional_id = base::to_utf8(request.transactional_id),
        .producer = {base::ProducerId(request.producer_id),
                     base::ProducerEpoch(request.producer_epoch)},
        .partitions = {group_slot_of(*call, base::to_utf8(request.group_id))}};
    const auto id = asked.transactional_id;
    ask_transactions<ErrorCode>(
        *call, id,
        [asked = std::move(asked)](auto& slot, auto done) mutable {
            slot.add_partitions(std::move(asked), std::move(done));
        },
        [call](ErrorCode error) { answer(*call, error); });
}

}  // namespace kaas::broker
