#include "broker/handlers/unregister_broker.h"

#include "base/ids.h"
#include "broker/errors.h"
#include "cluster/admin.h"

#include <utility>
#include <variant>

namespace kaas::broker {

void unregister_broker(CallPtr call, wire::UnregisterBrokerRequest request) {
    auto& home = call->home();
    auto& controller = call->services().node.controller();
    auto done = [call = std::move(call)](cluster::Result<std::monostate> unregistered) {
        wire::UnregisterBrokerResponse response;
        if (!unregistered) {
            response.error_code = to_wire(unregistered.error().code);
            response.error_message = unregistered.error().context;
        }
        call->answer(response);
    };
    controller.unregister_broker(base::BrokerId(request.broker_id), {&home, std::move(done)});
}

}  // namespace kaas::broker
