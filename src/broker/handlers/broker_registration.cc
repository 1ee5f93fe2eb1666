#include "broker/handlers/broker_registration.h"

#include "broker/errors.h"
#include "cluster/link_messages.h"
#include "cluster/link_wire.h"
#include "cluster/node.h"
#include "cluster/roll_call.h"
#include "cluster/volume_witness.h"
#include "wire/error_code.h"

#include <utility>
#include <variant>

namespace kaas::broker {

namespace {

void admit(CallPtr call, cluster::Registration registration) {
    auto& roll_call = call->services().node.roll_call();
    const auto link = call->peer().connection_id;
    auto& home = call->home();
    roll_call.register_broker(
        link, std::move(registration),
        {&home, [call = std::move(call)](const cluster::Result<std::monostate>& outcome) {
             wire::BrokerRegistrationResponse answer;
             if (!outcome) answer.error_code = to_wire(outcome.error().code);
             call->answer(answer);
         }});
}

void refuse(Call& call, const cluster::Error& why) {
    wire::BrokerRegistrationResponse answer;
    answer.error_code = to_wire(why.code);
    if (why.code == cluster::ErrorCode::kUnfitVolume) cluster::set_link_text(answer, why.context);
    call.answer(answer);
}

/// Before it is admitted: that both brokers see one volume.
void prove(CallPtr call, cluster::Registration registration, cluster::VolumeWitness& witness) {
    const auto life = registration.life;
    auto& home = call->home();
    if (!registration.proof->witnessed) {
        auto tickets = std::move(registration.proof->tickets);
        return witness.begin(
            life, std::move(tickets),
            {&home, [call = std::move(call)](const cluster::Result<cluster::ProbeTickets>& ours) {
                 if (!ours) return refuse(*call, ours.error());
                 wire::BrokerRegistrationResponse answer;
                 const auto text = cluster::to_text(*ours);
                 cluster::set_link_text(answer, text);
                 call->answer(answer);
             }});
    }
    witness.finish(life, {&home, [call = std::move(call), registration = std::move(registration)](
                                     const cluster::Result<std::monostate>& proven) mutable {
                              if (!proven) return refuse(*call, proven.error());
                              admit(std::move(call), std::move(registration));
                          }});
}

}  // namespace

void broker_registration(CallPtr call, wire::BrokerRegistrationRequest request) {
    wire::BrokerRegistrationResponse response;
    auto registration = cluster::parse_registration(cluster::link_text(request));
    if (!registration) {
        response.error_code = to_wire(registration.error().code);
        return call->answer(response);
    }
    auto& node = call->services().node;
    const auto witness = node.volume_witness();
    if (registration->proof && witness && node.controller().reigning()) {
        return prove(std::move(call), std::move(*registration), *witness);
    }
    admit(std::move(call), std::move(*registration));
}

}  // namespace kaas::broker
