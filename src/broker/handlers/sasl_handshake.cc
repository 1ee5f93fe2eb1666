#include "broker/handlers/sasl_handshake.h"

#include "broker/handlers/registry.h"
#include "catalog/broker_identity.h"
#include "security/scram.h"
#include "wire/error_code.h"

#include <fmt/format.h>

#include <cstdint>
#include <string_view>

namespace kaas::broker {

using wire::ErrorCode;

void sasl_handshake(CallPtr call, wire::SaslHandshakeRequest request) {
    wire::SaslHandshakeResponse response;
    const std::uint64_t connection = call->peer().connection_id;
    SaslExchanges& exchanges = call->state().sasl;
    if (is_broker(call->peer())) {
        response.error_code = ErrorCode::kIllegalSaslState;
        return call->answer(response);
    }
    if (exchanges.find(connection) != nullptr) {
        response.error_code = ErrorCode::kIllegalSaslState;
        return call->answer_last(response, "a second SaslHandshake");
    }
    response.mechanisms.emplace_back(security::kScramSha512);
    if (request.mechanism != security::kScramSha512) {
        response.error_code = ErrorCode::kUnsupportedSaslMechanism;
        return call->answer_last(
            response, fmt::format("mechanism {} is not served", request.mechanism.view()));
    }
    exchanges.begin(connection,
                    [credential = call->services().broker_credential](std::string_view user) {
                        return user == catalog::kBrokerUser ? credential : nullptr;
                    });
    call->answer(response);
}

}  // namespace kaas::broker
