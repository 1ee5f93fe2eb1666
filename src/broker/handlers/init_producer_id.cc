#include "broker/handlers/init_producer_id.h"

#include <utility>

namespace kaas::broker {
namespace {

using wire::ErrorCode;

void answer_error(Call& call, ErrorCode error) {
    wire::InitProducerIdResponse response;
    response.error_code = error;
    response.producer_id = base::kNoProducerId.value();
    response.producer_epoch = base::kNoProducerEpoch.value();
    call.answer(response);
}

}  // namespace

void init_producer_id(CallPtr call, wire::InitProducerIdRequest request) {
    // Apache's order: an id and an epoch come together or not at all.
    if ((request.producer_id == -1) != (request.producer_epoch == -1)) {
        return answer_error(*call, ErrorCode::kInvalidRequest);
    }
    if (request.transactional_id) {
        // An empty id names nobody (Apache TransactionCoordinator).
        return answer_error(*call, request.transactional_id->empty()
                                       ? ErrorCode::kInvalidRequest
                                       : ErrorCode::kCoordinatorNotAvailable);
    }
    auto& home = call->home();
    auto& ids = call->services().producer_ids;
    ids.next(home, [call = std::move(call)](cluster::Result<base::ProducerId> id) {
        // Clients repeat this one, whatever their age. Apache: RPCProducerIdManager, without a
        // block from its controller.
        if (!id) return answer_error(*call, ErrorCode::kCoordinatorLoadInProgress);
        wire::InitProducerIdResponse response;
        response.producer_id = id->value();
        response.producer_epoch = 0;
        call->answer(response);
    });
}

}  // namespace kaas::broker
