#include "broker/envelope_exchange.h"

#include "base/bytes.h"
#include "base/log.h"
#include "net/exchange.h"
#include "wire/error_code.h"
#include "wire/messages/envelope.h"
#include "wire/types.h"

#include <cstdint>
#include <string>
#include <utility>

namespace kaas::broker {

EnvelopeExchange::~EnvelopeExchange() {
    if (envelope_) envelope_->close("a request in an envelope was not answered");
}

void EnvelopeExchange::respond(net::Response response) {
    const auto bytes = response.output.bytes();
    wire::EnvelopeResponse answer;
    answer.response_data = wire::Bytes::borrow(bytes.subspan(sizeof(std::int32_t)));
    std::exchange(envelope_, nullptr)->answer(answer);
}

void EnvelopeExchange::close(const std::string& why) {
    base::log::warn("broker", "a request in an envelope is refused: {}", why);
    refuse(wire::ErrorCode::kInvalidRequest);
}

void EnvelopeExchange::refuse(wire::ErrorCode why) {
    wire::EnvelopeResponse answer;
    answer.error_code = why;
    std::exchange(envelope_, nullptr)->answer(answer);
}

}  // namespace kaas::broker
