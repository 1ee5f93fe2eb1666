#pragma once

// How whole messages become bytes and back; works for every generated message.

#include "wire/api.h"
#include "wire/error.h"
#include "wire/messages/request_header.h"
#include "wire/reader.h"
#include "wire/types.h"
#include "wire/writer.h"

#include <cstdint>
#include <expected>
#include <optional>
#include <string_view>
#include <utility>

namespace kaas::wire {
namespace detail {

[[nodiscard]] std::unexpected<Error> no_such_version(std::string_view message,
                                                     std::int16_t version);
/// Adds the message's name to the context.
[[nodiscard]] std::unexpected<Error> in_message(std::string_view message, std::int16_t version,
                                                Error error);

}  // namespace detail

/// Reads a message off `in`. What follows it is left there: Apache ignores bytes after a request's
/// body. Strings, bytes and records of the result borrow from the frame.
template <class Message>
[[nodiscard]] Result<Message> decode(Reader& in, std::int16_t version) {
    if (version < Message::kMinVersion || version > Message::kMaxVersion) {
        return detail::no_such_version(Message::kName, version);
    }
    Message message;
    message.decode(in, version);
    if (auto status = in.status(); !status) {
        return detail::in_message(Message::kName, version, std::move(status).error());
    }
    return message;
}

/// `decode` of a whole buffer: a request's body, a stored record.
template <class Message, class View>
[[nodiscard]] Result<Message> decode_all(View bytes, std::int16_t version) {
    Reader in(bytes);
    return decode<Message>(in, version);
}

/// Appends a message to `out`.
/// Errors: kUnsupportedVersion; kUnsupportedField when something is set that the version cannot
/// carry and must not lose (Apache throws UnsupportedVersionException); then `out` must not be
/// sent.
template <class Message>
[[nodiscard]] Result<void> encode(Writer& out, const Message& message, std::int16_t version) {
    if (version < Message::kMinVersion || version > Message::kMaxVersion) {
        return detail::no_such_version(Message::kName, version);
    }
    message.encode(out, version);
    if (auto status = out.status(); !status) {
        return detail::in_message(Message::kName, version, std::move(status).error());
    }
    return {};
}

/// The header of the request in `in`, whose frame's length prefix is gone. Its version follows from
/// the key and the version that it names. Errors: kUnknownApi for a key that we do not know; Apache
/// closes the connection on any error here.
[[nodiscard]] Result<RequestHeader> decode_request_header(Reader& in);

/// Length prefix and header of a response; `end_response` completes the prefix.
void begin_response(Writer& out, const Api& api, std::int16_t version, std::int32_t correlation_id);
/// Length prefix and header of a request.
[[nodiscard]] Result<void> begin_request(Writer& out, const Api& api, std::int16_t version,
                                         std::int32_t correlation_id,
                                         std::optional<String> client_id);
/// The frame with its length, external records included. Errors: kTooLarge for what a frame's
/// length cannot say.
[[nodiscard]] Result<Output> end_frame(Writer& out);

/// A response as it goes on the wire: length, header, body.
template <class Response>
[[nodiscard]] Result<Output> encode_response(const Response& response, std::int16_t version,
                                             std::int32_t correlation_id) {
    Writer out;
    begin_response(out, api(Response::kKey), version, correlation_id);
    KAAS_TRY(encode(out, response, version));
    return end_frame(out);
}

/// A request as it goes on the wire: length, header, body.
template <class Request>
[[nodiscard]] Result<Output> encode_request(const Request& request, std::int16_t version,
                                            std::int32_t correlation_id,
                                            std::optional<String> client_id) {
    Writer out;
    KAAS_TRY(begin_request(out, api(Request::kKey), version, correlation_id, std::move(client_id)));
    KAAS_TRY(encode(out, request, version));
    return end_frame(out);
}

}  // namespace kaas::wire
