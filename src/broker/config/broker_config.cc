#include "broker/config/broker_config.h"

#include "base/log.h"
#include "base/result.h"
#include "broker/config/connection_overrides.h"
#include "broker/config/cross_checks.h"
#include "broker/config/listeners.h"
#include "broker/config/merge.h"
#include "broker/config/volumes.h"
#include "catalog/config/broker_settings.h"
#include "catalog/config/definition.h"
#include "catalog/config/error.h"
#include "catalog/config/value.h"
#include "catalog/config/values.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

namespace kaas::broker {
namespace {

using catalog::BrokerSettings;
using catalog::ConfigFault;
using catalog::ConfigMap;
using catalog::ConfigResult;
using catalog::ConfigValues;

char ascii_upper(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; }

std::unexpected<catalog::ConfigError> conflict(std::string why) {
    return base::fail(ConfigFault::kConflict, std::move(why));
}

/// node.id and broker.id are two names of one thing (Apache `populateSynonyms`).
ConfigResult<void> unite_ids(ConfigMap& known) {
    auto node = known.find("node.id");
    auto broker = known.find("broker.id");
    if (node != known.end() && broker != known.end()) {
        if (catalog::trim(node->second) == catalog::trim(broker->second)) return {};
        return conflict(fmt::format(
            "node.id is {} and broker.id is {}: they are two names of one thing, set node.id "
            "alone",
            node->second, broker->second));
    }
    if (node != known.end()) known.insert_or_assign("broker.id", std::string(node->second));
    if (broker != known.end()) known.insert_or_assign("node.id", std::string(broker->second));
    return {};
}

/// Takes listeners that belong to a KRaft controller out: there is none to serve them.
void drop_controller_listeners(const ConfigValues& values, std::vector<Listener>& listeners,
                               std::vector<std::string>* notes) {
    const auto& names = values.get<std::vector<std::string>>("controller.listener.names");
    std::erase_if(listeners, [&](const Listener& listener) {
        if (std::ranges::find(names, listener.name) == names.end()) return false;
        if (notes != nullptr) {
            notes->push_back(
                fmt::format("{} is not opened: kaas has no KRaft controller", to_string(listener)));
        }
        return true;
    });
}

ConfigResult<void> check_protocols(const std::vector<Listener>& listeners) {
    for (const auto& listener : listeners) {
        if (listener.protocol == SecurityProtocol::kPlaintext) continue;
        return conflict(fmt::format(
            "listener {} asks for {}, which this version of kaas does not serve yet; only "
            "PLAINTEXT listeners can be opened",
            listener.name, name_of(listener.protocol)));
    }
    return {};
}

/// Brokers have nothing to tell each other yet, but what is said of it must be possible (Apache
/// `KafkaConfig.validateValues`): a listener that is not there, or a protocol that none speaks, is
/// a mistake, or a wish for encryption that is not met.
ConfigResult<void> check_inter_broker(const BrokerConfig& config, const ConfigMap& given) {
    const auto* name = std::get_if<std::string>(&config.values["inter.broker.listener.name"]);
    if (name != nullptr && given.contains("security.inter.broker.protocol")) {
        return conflict(
            "inter.broker.listener.name and security.inter.broker.protocol say the same in two "
            "ways; set one of them");
    }
    if (name != nullptr) {
        const auto called = [&](const Listener& listener) {
            return std::ranges::equal(listener.name, *name, {}, {}, ascii_upper);
        };
        if (std::ranges::any_of(config.advertised, called)) return {};
        return conflict(
            fmt::format("inter.broker.listener.name={} is not one of advertised.listeners", *name));
    }
    const auto& protocol = config.values.get<std::string>("security.inter.broker.protocol");
    if (protocol == name_of(SecurityProtocol::kPlaintext)) return {};
    return conflict(fmt::format(
        "security.inter.broker.protocol={} is not the protocol of any listener", protocol));
}

/// An element of controller.listener.names needs no entry in the map; kaas does not open it anyway.
void add_controller_names(const ConfigValues& values, ProtocolMap& protocols) {
    for (const auto& name : values.get<std::vector<std::string>>("controller.listener.names")) {
        protocols.try_emplace(name, SecurityProtocol::kPlaintext);
    }
}

ConfigResult<void> read_listeners(BrokerConfig& config, const ConfigInputs& inputs,
                                  std::vector<std::string>& notes) {
    const BrokerSettings& settings = config.settings;
    KAAS_TRY_ASSIGN(protocols, parse_protocol_map(settings.listener_security_protocol_map));
    add_controller_names(config.values, protocols);
    KAAS_TRY_ASSIGN(all, parse_listeners(settings.listeners, protocols));
    config.advertised = all;
    if (settings.advertised_listeners) {
        KAAS_TRY_ASSIGN(advertised,
                        parse_advertised(*settings.advertised_listeners, protocols, all));
        config.advertised = std::move(advertised);
    }
    config.listeners = std::move(all);
    drop_controller_listeners(config.values, config.listeners, &notes);
    drop_controller_listeners(config.values, config.advertised, nullptr);
    KAAS_TRY(check_protocols(config.listeners));
    if (config.listeners.empty()) return conflict("listeners: none is left to open");
    if (config.advertised.empty())
        return conflict("advertised.listeners: none is left to tell clients");
    KAAS_TRY_ASSIGN(reachable, routable(std::move(config.advertised), inputs.machine_name));
    config.advertised = std::move(reachable);
    return {};
}

/// Whoever names a directory wants to keep what is in it.
ConfigResult<void> check_ephemeral(const ConfigInputs& inputs, const MergedConfig& merged) {
    if (!inputs.ephemeral_dir) return {};
    std::string named;
    for (const auto* name : {"log.dirs", "log.dir", "kaas.cluster.dir"}) {
        if (merged.known.contains(name)) named = name;
    }
    for (const auto& [name, value] : merged.families) {
        if (is_volume_config(name)) named = name;
    }
    if (named.empty()) return {};
    return conflict(fmt::format(
        "--ephemeral keeps its data in a directory of its own, which goes with the process: leave "
        "out --ephemeral, or {}",
        named));
}

ConfigResult<void> read_directories(BrokerConfig& config, const ConfigMap& families) {
    const BrokerSettings& settings = config.settings;
    const auto& paths = settings.log_dirs ? *settings.log_dirs : settings.log_dir;
    KAAS_TRY_ASSIGN(dirs, parse_log_dirs(paths, families));
    KAAS_TRY(cordon(settings.cordoned_log_dirs, dirs));
    config.log_dirs = std::move(dirs);
    return {};
}

ConfigResult<HostPort> parse_host_port(const char* config, const std::string& text) {
    std::size_t colon = text.rfind(':');
    std::uint16_t port = 0;
    const char* end = text.data() + text.size();
    bool good = colon != std::string::npos;
    if (good) {
        auto [stop, error] = std::from_chars(text.data() + colon + 1, end, port);
        good = error == std::errc{} && stop == end;
    }
    if (!good) {
        return base::fail(ConfigFault::kInvalidValue,
                          fmt::format("{} cannot be '{}': it must be host:port", config, text));
    }
    std::string host = text.substr(0, colon);
    if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
    return HostPort{.host = std::move(host), .port = port};
}

ConfigResult<std::optional<HealthAddress>> parse_health(const std::string& text, bool is_default) {
    if (text.empty()) return std::nullopt;
    KAAS_TRY_ASSIGN(address, parse_host_port("kaas.health.listener", text));
    return HealthAddress{
        .host = std::move(address.host), .port = address.port, .is_default = is_default};
}

bool is_every_interface(const std::string& host) {
    return host.empty() || host == "0.0.0.0" || host == "::";
}

ConfigResult<std::optional<InternalListenerConfig>> parse_internal(
    const BrokerSettings& settings, const std::string& machine_name) {
    if (settings.kaas_mode == "standalone") return std::nullopt;
    InternalListenerConfig config;
    KAAS_TRY_ASSIGN(bind,
                    parse_host_port("kaas.internal.listener", settings.kaas_internal_listener));
    config.bind = std::move(bind);
    config.advertised = {.host = config.bind.host, .port = 0};
    if (settings.kaas_internal_advertised) {
        KAAS_TRY_ASSIGN(
            told, parse_host_port("kaas.internal.advertised", *settings.kaas_internal_advertised));
        if (is_every_interface(told.host)) {
            return conflict(fmt::format(
                "kaas.internal.advertised={} is no address that another broker can connect to",
                *settings.kaas_internal_advertised));
        }
        config.advertised = std::move(told);
    } else if (is_every_interface(config.bind.host)) {
        config.advertised.host = machine_name;
    }
    return config;
}

base::log::Options log_options(const BrokerSettings& settings) {
    return {
        .level = base::log::parse_level(settings.kaas_log_level).value_or(base::log::Level::kInfo),
        .format = settings.kaas_log_format == "json" ? base::log::Format::kJson
                                                     : base::log::Format::kText};
}

}  // namespace

ConfigResult<LoadedConfig> load_config(const ConfigInputs& inputs) {
    KAAS_TRY_ASSIGN(merged, merge(inputs));
    KAAS_TRY(check_ephemeral(inputs, merged));
    if (inputs.ephemeral_dir) merged.known.insert_or_assign("log.dirs", *inputs.ephemeral_dir);
    KAAS_TRY(unite_ids(merged.known));
    KAAS_TRY_ASSIGN(values, ConfigValues::parse(catalog::broker_configs(), merged.known));
    KAAS_TRY(check_broker_values(values));

    BrokerSettings settings = BrokerSettings::from(values);
    BrokerConfig config{.settings = std::move(settings), .values = std::move(values)};
    config.ephemeral = inputs.ephemeral_dir.has_value();
    config.node_id = base::BrokerId(config.settings.node_id);
    config.log = log_options(config.settings);
    KAAS_TRY(read_listeners(config, inputs, merged.notes));
    KAAS_TRY(check_inter_broker(config, merged.known));
    KAAS_TRY(read_directories(config, merged.families));
    KAAS_TRY_ASSIGN(overrides,
                    parse_connection_overrides(config.settings.max_connections_per_ip_overrides));
    config.connection_overrides = std::move(overrides);
    bool default_health = !merged.known.contains("kaas.health.listener");
    KAAS_TRY_ASSIGN(health, parse_health(config.settings.kaas_health_listener, default_health));
    config.health = std::move(health);
    KAAS_TRY_ASSIGN(internal, parse_internal(config.settings, inputs.machine_name));
    config.internal = std::move(internal);

    config.given = std::move(merged.known);
    config.given.merge(merged.families);
    return LoadedConfig{.config = std::move(config),
                        .notes = std::move(merged.notes),
                        .warnings = std::move(merged.warnings)};
}

}  // namespace kaas::broker
