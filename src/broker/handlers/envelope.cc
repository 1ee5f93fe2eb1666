#include "broker/handlers/envelope.h"

#include "base/buffer.h"
#include "base/bytes.h"
#include "broker/controller_calls.h"
#include "broker/envelope_exchange.h"
#include "broker/handlers/registry.h"
#include "cluster/node.h"
#include "net/exchange.h"
#include "wire/api.h"
#include "wire/error_code.h"
#include "wire/message.h"
#include "wire/messages/default_principal_data.h"
#include "wire/reader.h"

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

namespace kaas::broker {
namespace {

using wire::ErrorCode;

void refuse(Call& call, ErrorCode error) {
    wire::EnvelopeResponse response;
    response.error_code = error;
    call.answer(response);
}

/// Who asked the other broker. Empty for what Apache could not read either.
std::string principal_of(const wire::EnvelopeRequest& request) {
    if (!request.request_principal) return {};
    wire::Reader in(request.request_principal->view());
    const auto version = in.int16();
    const auto data = wire::decode<wire::DefaultPrincipalData>(in, version);
    if (!data) return {};
    return data->type.str() + ":" + data->name.str();
}

}  // namespace

void envelope(CallPtr call, wire::EnvelopeRequest request) {
    // Requests of many clients share a connection: none waits for the one before.
    call->pass();
    if (!call->services().node.controller().reigning()) {
        return refuse(*call, ErrorCode::kNotController);
    }
    auto principal = principal_of(request);
    if (principal.empty()) return refuse(*call, ErrorCode::kPrincipalDeserializationFailure);

    const auto& frame = call->frame();
    const auto inner = request.request_data.view();
    base::FrameRef part{
        frame.block,
        frame.bytes.subspan(static_cast<std::size_t>(inner.data() - frame.bytes.data()),
                            inner.size())};
    wire::Reader in(part.bytes);
    auto header = wire::decode_request_header(in);
    const auto* handler =
        header ? find_handler(header->request_api_key, Audience::kClients) : nullptr;
    if (handler == nullptr || !wire::api(handler->key).forwardable ||
        !wire::api(handler->key).versions.contains(header->request_api_version)) {
        return refuse(*call, ErrorCode::kInvalidRequest);
    }
    auto peer = call->peer();
    peer.principal = std::move(principal);
    peer.address = std::string(base::as_text(request.client_host_address.view()));
    auto& services = call->services();
    auto& state = call->state();
    const auto attempt = attempt_of(request);
    auto exchange =
        std::make_unique<EnvelopeExchange>(std::move(call), std::move(part), std::move(peer));
    handler->serve(
        std::make_shared<Call>(services, state, std::move(*header), std::move(exchange), attempt),
        in);
}

}  // namespace kaas::broker
