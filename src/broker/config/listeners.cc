#include "broker/config/listeners.h"

#include "base/result.h"
#include "catalog/config/error.h"
#include "catalog/config/value.h"

#include <boost/url/ipv4_address.hpp>
#include <boost/url/ipv6_address.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace kaas::broker {
namespace {

using catalog::ConfigError;
using catalog::ConfigFault;
using catalog::ConfigResult;

constexpr std::array<std::pair<std::string_view, SecurityProtocol>, 4> kProtocols = {{
    {"PLAINTEXT", SecurityProtocol::kPlaintext},
    {"SSL", SecurityProtocol::kSsl},
    {"SASL_PLAINTEXT", SecurityProtocol::kSaslPlaintext},
    {"SASL_SSL", SecurityProtocol::kSaslSsl},
}};

std::unexpected<ConfigError> invalid(std::string why) {
    return base::fail(ConfigFault::kInvalidValue, std::move(why));
}
std::unexpected<ConfigError> conflict(std::string why) {
    return base::fail(ConfigFault::kConflict, std::move(why));
}

std::string upper(std::string_view text) {
    std::string out(text);
    for (char& c : out) {
        if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    }
    return out;
}

bool is_host_character(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           std::string_view("-%._:").contains(c);
}

enum class AddressKind { kName, kIpv4, kIpv6 };

AddressKind kind_of(const std::string& host) {
    if (boost::urls::parse_ipv4_address(host)) return AddressKind::kIpv4;
    // A zone (fe80::1%eth0) is not part of the address.
    if (boost::urls::parse_ipv6_address(host.substr(0, host.find('%')))) return AddressKind::kIpv6;
    return AddressKind::kName;
}

/// Takes `[host]` or `host` off the front of `rest`, which then begins with the colon before the
/// port.
std::optional<std::string_view> take_host(std::string_view& rest) {
    if (rest.starts_with('[')) {
        std::size_t close = rest.find(']');
        if (close == std::string_view::npos) return std::nullopt;
        std::string_view host = rest.substr(1, close - 1);
        rest.remove_prefix(close + 1);
        return host;
    }
    std::size_t colon = rest.rfind(':');
    if (colon == std::string_view::npos) return std::nullopt;
    std::string_view host = rest.substr(0, colon);
    rest.remove_prefix(colon);
    return host;
}

std::optional<std::uint16_t> parse_port(std::string_view text) {
    std::uint16_t port = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
    if (text.empty() || error != std::errc{} || end != text.data() + text.size())
        return std::nullopt;
    return port;
}

ConfigResult<Listener> parse_listener(std::string_view config, std::string_view entry,
                                      const ProtocolMap& protocols) {
    auto shape = [&] {
        return invalid(fmt::format("{}: '{}' is not of the form NAME://host:port", config, entry));
    };
    std::size_t slashes = entry.find("://");
    if (slashes == std::string_view::npos || slashes == 0) return shape();
    std::string name = upper(catalog::trim(entry.substr(0, slashes)));
    std::string_view rest = entry.substr(slashes + 3);
    auto host = take_host(rest);
    if (!host || !rest.starts_with(':')) return shape();
    if (!std::ranges::all_of(*host, is_host_character)) {
        return invalid(
            fmt::format("{}: the host of '{}' has a character that no host has", config, entry));
    }
    auto port = parse_port(rest.substr(1));
    if (!port)
        return invalid(fmt::format("{}: the port of '{}' must be 0 to 65535", config, entry));
    auto protocol = protocols.find(name);
    if (protocol == protocols.end()) {
        return conflict(fmt::format(
            "{}: listener {} has no protocol; add {}:PLAINTEXT (or another protocol) to "
            "listener.security.protocol.map",
            config, name, name));
    }
    return Listener{.name = std::move(name),
                    .protocol = protocol->second,
                    .host = std::string(*host),
                    .port = *port};
}

ConfigResult<std::vector<Listener>> parse_all(std::string_view config,
                                              const std::vector<std::string>& entries,
                                              const ProtocolMap& protocols) {
    std::vector<Listener> listeners;
    for (const auto& entry : entries) {
        KAAS_TRY_ASSIGN(listener, parse_listener(config, entry, protocols));
        if (std::ranges::find(listeners, listener.name, &Listener::name) != listeners.end()) {
            return conflict(
                fmt::format("{}: two listeners are called {}; each needs a name of its own", config,
                            listener.name));
        }
        listeners.push_back(std::move(listener));
    }
    return listeners;
}

bool may_share_port(const Listener& a, const Listener& b) {
    AddressKind first = kind_of(a.host);
    AddressKind second = kind_of(b.host);
    return (first == AddressKind::kIpv4 && second == AddressKind::kIpv6) ||
           (first == AddressKind::kIpv6 && second == AddressKind::kIpv4);
}

ConfigResult<void> check_ports(const std::vector<Listener>& listeners) {
    for (std::size_t i = 0; i < listeners.size(); ++i) {
        for (std::size_t j = i + 1; j < listeners.size(); ++j) {
            const Listener& a = listeners[i];
            const Listener& b = listeners[j];
            if (a.port == 0 || a.port != b.port || may_share_port(a, b)) continue;
            return conflict(fmt::format(
                "listeners: {} and {} share port {}; only an IPv4 and an IPv6 address may", a.name,
                b.name, a.port));
        }
    }
    return {};
}

bool means_every_interface(const std::string& host) { return host == "0.0.0.0" || host == "::"; }

}  // namespace

std::string_view name_of(SecurityProtocol protocol) {
    return kProtocols[static_cast<std::size_t>(protocol)].first;
}

std::string to_string(const Listener& listener) {
    bool brackets = listener.host.contains(':');
    return fmt::format("{}://{}{}{}:{}", listener.name, brackets ? "[" : "", listener.host,
                       brackets ? "]" : "", listener.port);
}

ConfigResult<ProtocolMap> parse_protocol_map(std::string_view text) {
    ProtocolMap map;
    for (const auto& entry : catalog::split_list(text)) {
        std::size_t colon = entry.rfind(':');
        if (colon == std::string::npos || colon == 0) {
            return invalid(fmt::format(
                "listener.security.protocol.map: '{}' is not of the form NAME:PROTOCOL", entry));
        }
        std::string name = upper(catalog::trim(std::string_view(entry).substr(0, colon)));
        std::string wanted = upper(catalog::trim(std::string_view(entry).substr(colon + 1)));
        const auto* found =
            std::ranges::find(kProtocols, wanted, [](const auto& known) { return known.first; });
        if (found == kProtocols.end()) {
            return invalid(
                fmt::format("listener.security.protocol.map: {} is not a protocol; there are "
                            "PLAINTEXT, SSL, SASL_PLAINTEXT and SASL_SSL",
                            wanted));
        }
        map.insert_or_assign(std::move(name), found->second);
    }
    return map;
}

ConfigResult<std::vector<Listener>> parse_listeners(const std::vector<std::string>& entries,
                                                    const ProtocolMap& protocols) {
    KAAS_TRY_ASSIGN(listeners, parse_all("listeners", entries, protocols));
    KAAS_TRY(check_ports(listeners));
    return listeners;
}

ConfigResult<std::vector<Listener>> parse_advertised(const std::vector<std::string>& entries,
                                                     const ProtocolMap& protocols,
                                                     const std::vector<Listener>& listeners) {
    KAAS_TRY_ASSIGN(advertised, parse_all("advertised.listeners", entries, protocols));
    for (const auto& listener : advertised) {
        if (std::ranges::find(listeners, listener.name, &Listener::name) == listeners.end()) {
            return conflict(
                fmt::format("advertised.listeners: {} is not one of listeners", listener.name));
        }
    }
    return advertised;
}

ConfigResult<std::vector<Listener>> routable(std::vector<Listener> advertised,
                                             const std::string& machine_name) {
    for (auto& listener : advertised) {
        if (means_every_interface(listener.host)) {
            return conflict(
                fmt::format("advertised.listeners: no client can connect to {}; set "
                            "advertised.listeners={}://{}:{}",
                            to_string(listener), listener.name, machine_name, listener.port));
        }
        if (listener.host.empty()) listener.host = machine_name;
    }
    return advertised;
}

}  // namespace kaas::broker
