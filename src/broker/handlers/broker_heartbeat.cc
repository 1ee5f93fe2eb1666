#include "broker/handlers/broker_heartbeat.h"

#include "broker/errors.h"
#include "catalog/image.h"
#include "cluster/error.h"
#include "cluster/link_messages.h"
#include "cluster/link_wire.h"
#include "cluster/node.h"
#include "cluster/roll_call.h"
#include "wire/error_code.h"

#include <utility>
#include <variant>

namespace kaas::broker {
namespace {

void refuse(Call& call, const cluster::Error& why) {
    wire::BrokerHeartbeatResponse response;
    response.error_code = to_wire(why.code);
    call.answer(response);
}

}  // namespace

void broker_heartbeat(CallPtr call, wire::BrokerHeartbeatRequest request) {
    auto heartbeat = cluster::parse_heartbeat(cluster::link_text(request));
    if (!heartbeat) return refuse(*call, heartbeat.error());
    auto& roll_call = call->services().node.roll_call();
    const auto link = call->peer().connection_id;
    auto& home = call->home();
    if (auto* report = std::get_if<cluster::Report>(&heartbeat->body)) {
        return roll_call.report(
            link, heartbeat->life, std::move(*report),
            {&home, [call = std::move(call)](const cluster::Result<std::monostate>& outcome) {
                 if (!outcome) return refuse(*call, outcome.error());
                 call->answer(
                     wire::BrokerHeartbeatResponse{.is_caught_up = true, .is_fenced = false});
             }});
    }
    roll_call.watch(link, heartbeat->life, std::get<catalog::ImageVersion>(heartbeat->body),
                    {&home, [call = std::move(call)](const cluster::Result<cluster::News>& news) {
                         if (!news) return refuse(*call, news.error());
                         wire::BrokerHeartbeatResponse answer{.is_caught_up = true,
                                                              .is_fenced = false};
                         const auto text = cluster::to_text(*news);
                         cluster::set_link_text(answer, text);
                         call->answer(answer);
                     }});
}

}  // namespace kaas::broker
