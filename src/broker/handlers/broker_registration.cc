#include "broker/handlers/broker_registration.h"

#include "broker/errors.h"
#include "cluster/link_messages.h"
#include "cluster/link_wire.h"
#include "cluster/node.h"
#include "cluster/roll_call.h"
#include "wire/error_code.h"

#include <utility>
#include <variant>

namespace kaas::broker {

void broker_registration(CallPtr call, wire::BrokerRegistrationRequest request) {
    wire::BrokerRegistrationResponse response;
    auto registration = cluster::parse_registration(cluster::link_text(request));
    if (!registration) {
        response.error_code = to_wire(registration.error().code);
        return call->answer(response);
    }
    auto& roll_call = call->services().node.roll_call();
    const auto link = call->peer().connection_id;
    auto& home = call->home();
    roll_call.register_broker(
        link, std::move(*registration),
        {&home, [call = std::move(call)](const cluster::Result<std::monostate>& outcome) {
             wire::BrokerRegistrationResponse answer;
             if (!outcome) answer.error_code = to_wire(outcome.error().code);
             call->answer(answer);
         }});
}

}  // namespace kaas::broker
