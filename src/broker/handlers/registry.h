#pragma once

#include "broker/call.h"
#include "wire/api_key.h"
#include "wire/reader.h"

#include <cstdint>
#include <span>

namespace kaas::broker {

/// How one API is served. `serve` decodes the body from `in` (which stands behind the header) and
/// sees to the answer.
struct Handler {
    wire::ApiKey key;
    void (*serve)(CallPtr call, wire::Reader& in);
};

/// All APIs that this broker serves, by key: what ApiVersions advertises.
[[nodiscard]] std::span<const Handler> handlers();
/// Null when the key is not served.
[[nodiscard]] const Handler* find_handler(std::int16_t key);

}  // namespace kaas::broker
