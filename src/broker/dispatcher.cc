#include "broker/dispatcher.h"

#include "broker/call.h"
#include "broker/controller_calls.h"
#include "broker/handlers/api_versions.h"
#include "broker/handlers/registry.h"
#include "broker/refusals.h"
#include "catalog/broker_identity.h"
#include "cluster/node.h"
#include "cluster/roll_call.h"
#include "net/reactor.h"
#include "wire/api.h"
#include "wire/error.h"
#include "wire/message.h"
#include "wire/reader.h"

#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <utility>

namespace kaas::broker {

void Dispatcher::handle(std::unique_ptr<net::Exchange> exchange) {
    wire::Reader in(exchange->frame().bytes);
    auto header = wire::decode_request_header(in);
    if (!header) {
        const bool unknown = header.error().code == wire::CodecError::kUnknownApi;
        services_->refusals.count(unknown ? Refusal::kApiKey : Refusal::kHeader);
        exchange->close(header.error().context);
        return;
    }
    std::int16_t key = header->request_api_key;
    std::int16_t version = header->request_api_version;
    const auto audience = audience_of(exchange->peer());
    const Handler* handler = find_handler(key, audience);
    if (handler == nullptr) {
        services_->refusals.count(Refusal::kApiKey);
        exchange->close(fmt::format("api key {} is not served", key));
        return;
    }
    if (!is_open_to(exchange->peer(), handler->key)) {
        services_->refusals.count(Refusal::kUnauthenticated);
        exchange->close(fmt::format("api key {} came before authentication", key));
        return;
    }
    auto& state = services_->state_of(exchange->reactor());
    auto call = std::make_shared<Call>(*services_, state, std::move(*header), std::move(exchange));
    const auto& api = wire::api(handler->key);
    if (versions(*handler, audience).contains(version)) {
        const bool is_for_controller = api.forwardable && audience == Audience::kClients;
        if (is_for_controller && services_->controller_calls.elsewhere()) {
            return services_->controller_calls.forward(std::move(call));
        }
        handler->serve(std::move(call), in);
    } else if (handler->key == wire::ApiKey::kApiVersions) {
        refuse_api_versions(*call);
    } else {
        call->refuse(Refusal::kVersion,
                     fmt::format("version {} of api key {} is not served", version, key));
    }
}

void Dispatcher::disconnected(const net::Peer& peer) {
    auto& state = services_->state_of(*net::Reactor::current());
    state.parked.drop(peer.connection_id);
    state.sasl.drop(peer.connection_id);
    if (peer.listener == catalog::kInternalListener) {
        services_->node.roll_call().disconnected(peer.connection_id);
    }
}

void Dispatcher::draining() {
    if (services_ == nullptr) return;  // the start has failed
    services_->state_of(*net::Reactor::current()).parked.close();
}

}  // namespace kaas::broker
