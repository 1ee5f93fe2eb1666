#include "wire/message.h"

#include "base/assert.h"
#include "base/result.h"
#include "wire/api.h"
#include "wire/error.h"
#include "wire/messages/request_header.h"
#include "wire/messages/response_header.h"
#include "wire/types.h"
#include "wire/writer.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

namespace kaas::wire {
namespace {

constexpr std::size_t kLengthBytes = 4;

void begin_frame(Writer& out) {
    KAAS_ASSERT(out.size() == 0);
    out.int32(0);
}

}  // namespace

namespace detail {

std::unexpected<Error> no_such_version(std::string_view message, std::int16_t version) {
    return base::fail(CodecError::kUnsupportedVersion,
                      fmt::format("{} has no version {}", message, version));
}

std::unexpected<Error> in_message(std::string_view message, std::int16_t version, Error error) {
    return base::fail(error.code, fmt::format("{} v{}: {}", message, version, error.context));
}

}  // namespace detail

Result<RequestHeader> decode_request_header(Reader& in) {
    Reader ahead = in;
    const std::int16_t key = ahead.int16();
    const std::int16_t version = ahead.int16();
    KAAS_TRY(ahead.status());
    const Api* api = find_api(key);
    if (api == nullptr) {
        return base::fail(CodecError::kUnknownApi,
                          fmt::format("API key {} version {}", key, version));
    }
    return decode<RequestHeader>(in, api->request_header(version));
}

void begin_response(Writer& out, const Api& api, std::int16_t version,
                    std::int32_t correlation_id) {
    begin_frame(out);
    ResponseHeader{.correlation_id = correlation_id}.encode(out, api.response_header(version));
}

Result<void> begin_request(Writer& out, const Api& api, std::int16_t version,
                           std::int32_t correlation_id, std::optional<String> client_id) {
    begin_frame(out);
    RequestHeader header{.request_api_key = static_cast<std::int16_t>(api.key),
                         .request_api_version = version,
                         .correlation_id = correlation_id,
                         .client_id = std::move(client_id)};
    return encode(out, header, api.request_header(version));
}

Result<Output> end_frame(Writer& out) {
    const std::size_t length = out.wire_size() - kLengthBytes;
    if (length > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max())) {
        return base::fail(CodecError::kTooLarge,
                          fmt::format("{} bytes do not fit into a frame", length));
    }
    out.patch_int32(0, static_cast<std::int32_t>(length));
    return out.take();
}

}  // namespace kaas::wire
