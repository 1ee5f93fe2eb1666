#pragma once

#include "broker/config/broker_config.h"
#include "catalog/config/error.h"

#include <cstdint>
#include <string_view>

namespace kaas::broker {

/// Reads `max.connections.per.ip.overrides`: `address:count`, separated by commas. Addresses become
/// what sockets call them (`::1`); names of hosts are refused, because nothing looks them up.
[[nodiscard]] catalog::ConfigResult<ConnectionOverrides> parse_connection_overrides(
    std::string_view text);

}  // namespace kaas::broker
