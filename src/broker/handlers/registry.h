#pragma once

#include "broker/call.h"
#include "net/exchange.h"
#include "wire/api.h"
#include "wire/api_key.h"
#include "wire/reader.h"

#include <array>
#include <cstdint>
#include <span>

namespace kaas::broker {

/// How one API is served. `serve` decodes the body from `in` (which stands behind the header) and
/// sees to the answer.
struct Handler {
    wire::ApiKey key;
    void (*serve)(CallPtr call, wire::Reader& in);
};

/// For whom a listener is: it serves their APIs and no other.
enum class Audience : std::uint8_t {
    kClients,
    kBrokers,  ///< the internal listener: only who has authenticated as a broker is served there
};
inline constexpr std::array kAudiences = {Audience::kClients, Audience::kBrokers};

[[nodiscard]] Audience audience_of(const net::Peer& peer);

/// All APIs that are served to `audience`, by key: what ApiVersions advertises there.
[[nodiscard]] std::span<const Handler> handlers(Audience audience);
/// Null when the key is not served.
[[nodiscard]] const Handler* find_handler(std::int16_t key, Audience audience);

/// The versions of a served API that `audience` may use.
[[nodiscard]] wire::VersionRange versions(const Handler& handler, Audience audience);

/// True once the peer has shown that it is a broker.
[[nodiscard]] bool is_broker(const net::Peer& peer);
/// True when `key` is served to this peer as it is now: brokers authenticate first.
[[nodiscard]] bool is_open_to(const net::Peer& peer, wire::ApiKey key);

}  // namespace kaas::broker
