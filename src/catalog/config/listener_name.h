#pragma once

#include <string_view>

namespace kaas::catalog {

/// For `listener.name.<listener>.[<mechanism>.]<config>`: the config that it overrides for one
/// listener. Empty for every other name (Apache `DynamicBrokerConfig.brokerConfigSynonyms`).
[[nodiscard]] std::string_view base_of_listener_config(std::string_view name);

}  // namespace kaas::catalog
