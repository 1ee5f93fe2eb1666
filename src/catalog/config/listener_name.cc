#include "catalog/config/listener_name.h"

#include <cstddef>
#include <string_view>

namespace kaas::catalog {
namespace {

constexpr std::string_view kPrefix = "listener.name.";
/// These may stand behind a mechanism: listener.name.internal.scram-sha-512.sasl.jaas.config.
constexpr std::string_view kPerMechanism[] = {
    "sasl.jaas.config",          "sasl.login.callback.handler.class",
    "sasl.login.class",          "sasl.server.callback.handler.class",
    "connections.max.reauth.ms",
};

}  // namespace

std::string_view base_of_listener_config(std::string_view name) {
    if (!name.starts_with(kPrefix)) return {};
    std::size_t dot = name.find('.', kPrefix.size());
    if (dot == std::string_view::npos) return {};
    std::string_view base = name.substr(dot + 1);
    for (auto config : kPerMechanism) {
        if (base.ends_with(config)) return config;
    }
    return base;
}

}  // namespace kaas::catalog
