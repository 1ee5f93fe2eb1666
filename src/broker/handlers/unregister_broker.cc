#include "broker/handlers/unregister_broker.h"

#include "base/ids.h"
#include "broker/controller_calls.h"
#include "broker/errors.h"
#include "cluster/admin.h"
#include "cluster/error.h"

#include <utility>
#include <variant>

namespace kaas::broker {

void unregister_broker(CallPtr call, wire::UnregisterBrokerRequest request) {
    auto& home = call->home();
    auto& controller = call->services().node.controller();
    auto done = [call = std::move(call)](cluster::Result<std::monostate> unregistered) {
        if (!unregistered &&
            call->services().controller_calls.ask_next(call, unregistered.error())) {
            return;
        }
        // By an earlier attempt, whose controller has died before it could answer.
        const bool is_done =
            !unregistered && call->attempt().again &&
            unregistered.error().code == cluster::ErrorCode::kBrokerIdNotRegistered;
        wire::UnregisterBrokerResponse response;
        if (!unregistered && !is_done) {
            response.error_code = to_wire(unregistered.error().code);
            response.error_message = unregistered.error().context;
        }
        call->answer(response);
    };
    controller.unregister_broker(base::BrokerId(request.broker_id), {&home, std::move(done)});
}

}  // namespace kaas::broker
