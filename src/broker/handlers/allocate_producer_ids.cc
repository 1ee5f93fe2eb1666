#include "broker/handlers/allocate_producer_ids.h"

#include "broker/errors.h"
#include "broker/producer_ids.h"
#include "cluster/admin.h"
#include "cluster/error.h"
#include "cluster/node.h"

#include <utility>

namespace kaas::broker {

void allocate_producer_ids(CallPtr call, wire::AllocateProducerIdsRequest) {
    auto& controller = call->services().node.controller();
    auto& home = call->home();
    controller.allocate_producer_ids(
        ProducerIds::kBlockSize,
        {&home, [call = std::move(call)](const cluster::Result<cluster::ProducerIdBlock>& block) {
             wire::AllocateProducerIdsResponse response;
             if (block) {
                 response.producer_id_start = block->first.value();
                 response.producer_id_len = block->count;
             } else {
                 response.error_code = to_wire(block.error().code);
             }
             call->answer(response);
         }});
}

}  // namespace kaas::broker
