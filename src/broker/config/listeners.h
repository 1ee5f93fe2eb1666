#pragma once

#include "catalog/config/error.h"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace kaas::broker {

enum class SecurityProtocol { kPlaintext, kSsl, kSaslPlaintext, kSaslSsl };

/// PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL.
[[nodiscard]] std::string_view name_of(SecurityProtocol protocol);

/// One entry of `listeners` or `advertised.listeners`.
struct Listener {
    std::string name;  ///< in upper case
    SecurityProtocol protocol = SecurityProtocol::kPlaintext;
    std::string host;  ///< without brackets; empty means every interface
    std::uint16_t port = 0;

    friend bool operator==(const Listener&, const Listener&) = default;
};

/// `NAME://host:port`, an IPv6 host in brackets.
[[nodiscard]] std::string to_string(const Listener& listener);

using ProtocolMap = std::map<std::string, SecurityProtocol, std::less<>>;

/// Reads `listener.security.protocol.map`: NAME:PROTOCOL, separated by commas.
[[nodiscard]] catalog::ConfigResult<ProtocolMap> parse_protocol_map(std::string_view text);

/// Reads `listeners`: names differ, ports differ, except that one IPv4 and one IPv6 address may
/// share a port, and port 0 may stand more than once (Apache
/// `AbstractKafkaConfig.listenerListToEndPoints`).
[[nodiscard]] catalog::ConfigResult<std::vector<Listener>> parse_listeners(
    const std::vector<std::string>& entries, const ProtocolMap& protocols);

/// Reads `advertised.listeners`: names differ and are among those of `listeners`.
[[nodiscard]] catalog::ConfigResult<std::vector<Listener>> parse_advertised(
    const std::vector<std::string>& entries, const ProtocolMap& protocols,
    const std::vector<Listener>& listeners);

/// What clients are told: an empty host becomes `machine_name`.
/// Errors: kConflict for 0.0.0.0 and [::], which no client can connect to.
[[nodiscard]] catalog::ConfigResult<std::vector<Listener>> routable(
    std::vector<Listener> advertised, const std::string& machine_name);

}  // namespace kaas::broker
