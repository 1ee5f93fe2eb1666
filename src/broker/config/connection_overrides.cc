#include "broker/config/connection_overrides.h"

#include "base/result.h"
#include "broker/config/broker_config.h"
#include "catalog/config/error.h"
#include "catalog/config/value.h"

#include <boost/url/ipv4_address.hpp>
#include <boost/url/ipv6_address.hpp>
#include <fmt/format.h>

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace kaas::broker {
namespace {

std::optional<std::string> canonical_address(std::string_view text) {
    if (text.starts_with('[') && text.ends_with(']')) text = text.substr(1, text.size() - 2);
    if (auto four = boost::urls::parse_ipv4_address(text)) return four->to_string();
    if (auto six = boost::urls::parse_ipv6_address(text)) return six->to_string();
    return std::nullopt;
}

std::optional<std::int32_t> parse_count(std::string_view text) {
    std::int32_t count = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
    bool good = error == std::errc{} && end == text.data() + text.size() && count >= 0;
    return good ? std::optional(count) : std::nullopt;
}

}  // namespace

catalog::ConfigResult<ConnectionOverrides> parse_connection_overrides(std::string_view text) {
    ConnectionOverrides overrides;
    for (const auto& entry : catalog::split_list(text)) {
        std::string_view whole(entry);
        std::size_t colon = whole.rfind(':');
        bool has_count = colon != std::string_view::npos;
        auto address = canonical_address(catalog::trim(whole.substr(0, colon)));
        auto count = has_count ? parse_count(catalog::trim(whole.substr(colon + 1))) : std::nullopt;
        if (!address || !count) {
            return base::fail(
                catalog::ConfigFault::kInvalidValue,
                fmt::format("max.connections.per.ip.overrides: '{}' is not of the form "
                            "address:count, as 10.0.0.7:100",
                            entry));
        }
        overrides.insert_or_assign(*address, *count);
    }
    return overrides;
}

}  // namespace kaas::broker
