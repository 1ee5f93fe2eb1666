#pragma once

#include "wire/api_key.h"

#include <cstdint>
#include <span>
#include <string_view>

namespace kaas::wire {

/// Both ends included; empty when `min` is above `max`.
struct VersionRange {
    std::int16_t min = 0;
    std::int16_t max = -1;

    [[nodiscard]] constexpr bool contains(std::int16_t version) const {
        return min <= version && version <= max;
    }
    [[nodiscard]] constexpr bool empty() const { return min > max; }

    friend bool operator==(const VersionRange&, const VersionRange&) = default;
};

/// The listeners on which Apache serves an API.
inline constexpr std::uint8_t kOnBroker = 1;
inline constexpr std::uint8_t kOnController = 2;

/// One row of the registry: what protocol/ says about an API.
struct Api {
    ApiKey key;
    std::string_view name;
    VersionRange versions;    ///< that are served; released ones only
    VersionRange advertised;  ///< in ApiVersions; wider for Produce, empty for internal APIs
    std::int16_t flexible_from;
    std::uint8_t listeners;
    bool forwardable;        ///< may go to the controller in an Envelope
    bool cluster_action;     ///< needs CLUSTER_ACTION: only brokers send it
    std::string_view since;  ///< the release of ours that serves it; empty while none does

    /// Header version of requests; also right for versions that are not served.
    [[nodiscard]] constexpr std::int16_t request_header(std::int16_t version) const {
        return version >= flexible_from ? 2 : 1;
    }
    /// Header version of responses. An ApiVersions response always has version 0: its reader does
    /// not know yet what we speak (KIP-511).
    [[nodiscard]] constexpr std::int16_t response_header(std::int16_t version) const {
        return version >= flexible_from && key != ApiKey::kApiVersions ? 1 : 0;
    }
};

/// All APIs that we have messages for, by key.
extern const std::span<const Api> kApis;

/// Null for a key that we do not know.
[[nodiscard]] const Api* find_api(std::int16_t key);
/// For a key of the enumeration: always there.
[[nodiscard]] const Api& api(ApiKey key);

}  // namespace kaas::wire
