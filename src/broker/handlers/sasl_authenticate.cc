#include "broker/handlers/sasl_authenticate.h"

#include "base/bytes.h"
#include "base/log.h"
#include "broker/handlers/registry.h"
#include "broker/refusals.h"
#include "security/error.h"
#include "security/scram.h"
#include "wire/error_code.h"

#include <fmt/format.h>

#include <cstdint>
#include <string>

namespace kaas::broker {
namespace {

using wire::ErrorCode;

/// For the peer: who guesses is not told what was wrong.
std::string told(const security::Error& error) {
    if (error.code == security::ErrorCode::kOtherIdentity) {
        return "The authorization id must be the user's own name.";
    }
    return fmt::format("The credentials for {} are not valid.", security::kScramSha512);
}

}  // namespace

void sasl_authenticate(CallPtr call, wire::SaslAuthenticateRequest request) {
    wire::SaslAuthenticateResponse response;
    const std::uint64_t connection = call->peer().connection_id;
    SaslExchanges& exchanges = call->state().sasl;
    if (is_broker(call->peer())) {
        response.error_code = ErrorCode::kIllegalSaslState;
        response.error_message = "This connection is authenticated already.";
        return call->answer(response);
    }
    security::ScramServer* exchange = exchanges.find(connection);
    if (exchange == nullptr) {
        return call->refuse(Refusal::kUnauthenticated, "SaslAuthenticate before SaslHandshake");
    }
    const auto token = exchange->answer(base::as_text(request.auth_bytes.view()));
    if (!token) {
        base::log::warn("broker", "{} failed to authenticate as a broker: {}", call->peer().address,
                        token.error().context);
        response.error_code = ErrorCode::kSaslAuthenticationFailed;
        response.error_message = told(token.error());
        return call->answer_last(response, "authentication failed");
    }
    response.auth_bytes = base::as_bytes(*token);
    if (exchange->complete()) {
        call->peer().principal = "User:" + exchange->user();
        exchanges.drop(connection);
    }
    call->answer(response);
}

}  // namespace kaas::broker
