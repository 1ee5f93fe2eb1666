#include "broker/config/merge.h"

#include "base/result.h"
#include "base/utf8.h"
#include "broker/config/broker_config.h"
#include "broker/config/environment.h"
#include "broker/config/properties.h"
#include "broker/config/volumes.h"
#include "catalog/config/definition.h"
#include "catalog/config/error.h"
#include "catalog/config/listener_name.h"
#include "catalog/config/nearest_name.h"
#include "catalog/config/value.h"
#include "catalog/config/values.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <expected>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kaas::broker {
namespace {

using catalog::ConfigDefinition;
using catalog::ConfigError;
using catalog::ConfigFault;
using catalog::ConfigResult;

/// Read by Apache's authorizer, so they stand in none of Apache's tables.
constexpr std::string_view kOfTheAuthorizer[] = {"super.users", "allow.everyone.if.no.acl.found"};

bool is_family(std::string_view name) {
    return !catalog::base_of_listener_config(name).empty() || is_volume_config(name) ||
           std::ranges::find(kOfTheAuthorizer, name) != std::end(kOfTheAuthorizer);
}

std::unexpected<ConfigError> at(std::string_view place, ConfigError error) {
    error.context = fmt::format("{}: {}", place, error.context);
    return std::unexpected(std::move(error));
}

/// Takes `name` for a misspelt kaas.volume.<volume>.<field>: the right spelling, or empty.
std::string nearest_volume_config(std::string_view name) {
    constexpr std::string_view kOwn = "kaas.";
    if (!name.starts_with(kOwn)) return {};
    const std::size_t begin = name.find('.', kOwn.size());
    if (begin == std::string_view::npos) return {};
    const std::string_view volume = name.substr(begin + 1, name.find('.', begin + 1) - begin - 1);
    const auto right = volume_configs(volume);
    catalog::NearestName nearest(name);
    for (const auto& candidate : right) nearest.offer(candidate);
    return std::string(nearest.best());
}

std::string unknown_text(std::string_view name) {
    // Asked first: of the tables' names, only unlike ones are as near to a name of a family.
    if (const auto volume = nearest_volume_config(name); !volume.empty()) {
        return fmt::format("unknown broker config '{}'; did you mean '{}'?", name, volume);
    }
    const auto& topics = catalog::topic_configs();
    if (const ConfigDefinition* topic = topics.find(name);
        topic != nullptr && !topic->broker_synonyms.empty()) {
        return fmt::format("'{}' is a config of topics; its broker-wide default is '{}'", name,
                           topic->broker_synonyms.front().name);
    }
    return catalog::unknown_name_text(catalog::broker_configs(), name);
}

/// For listener.name.<listener>.<something that is no config>.
std::string unknown_listener_text(std::string_view name) {
    const std::string_view base = catalog::base_of_listener_config(name);
    const std::string_view nearest = catalog::broker_configs().nearest(base);
    std::string text = fmt::format("unknown broker config '{}'", name);
    if (!nearest.empty()) {
        text += fmt::format("; did you mean '{}{}'?", name.substr(0, name.size() - base.size()),
                            nearest);
    }
    return text;
}

/// Checks one value and keeps it; `place` is where it stands.
ConfigResult<void> put(MergedConfig& merged, std::string_view place, const std::string& name,
                       const std::string& text) {
    if (!base::is_utf8(name) || !base::is_utf8(text)) {
        return at(place,
                  {ConfigFault::kInvalidValue,
                   fmt::format("{} is not UTF-8 text", base::is_utf8(name) ? name : "a name")});
    }
    const ConfigDefinition* definition = catalog::broker_configs().find(name);
    if (definition != nullptr && definition->dynamic_only) {
        return at(place, {ConfigFault::kUnknownName,
                          fmt::format("'{}' can only be set dynamically", name)});
    }
    if (definition != nullptr) {
        if (auto value = catalog::parse_value(*definition, text); !value)
            return at(place, value.error());
        merged.known.insert_or_assign(name, text);
        return {};
    }
    if (!is_family(name)) return at(place, {ConfigFault::kUnknownName, unknown_text(name)});
    const ConfigDefinition* base =
        catalog::broker_configs().find(catalog::base_of_listener_config(name));
    if (base != nullptr) {
        if (auto value = catalog::parse_value(*base, text); !value) return at(place, value.error());
    } else if (name.starts_with("listener.name.")) {
        return at(place, {ConfigFault::kUnknownName, unknown_listener_text(name)});
    }
    merged.families.insert_or_assign(name, text);
    return {};
}

ConfigResult<void> merge_file(MergedConfig& merged, const ConfigInputs& inputs) {
    if (!inputs.file) return {};
    auto properties = parse_properties(*inputs.file);
    if (!properties) return at(inputs.file_name, properties.error());
    for (const auto& [name, text] : *properties)
        KAAS_TRY(put(merged, inputs.file_name, name, text));
    return {};
}

/// A variable of an unknown name is reported, not refused: Kubernetes sets KAFKA_PORT and its like
/// for every Service that is called kafka.
ConfigResult<void> merge_environment(MergedConfig& merged, const ConfigInputs& inputs) {
    for (const auto& [variable, text] : inputs.environment) {
        auto name = config_of_variable(variable);
        if (!name) continue;
        auto done = put(merged, variable, *name, text);
        if (done) continue;
        if (done.error().code != ConfigFault::kUnknownName) return done;
        merged.warnings.push_back(fmt::format("ignored {}", done.error().context));
    }
    return {};
}

ConfigResult<void> merge_overrides(MergedConfig& merged, const ConfigInputs& inputs) {
    for (const auto& override_text : inputs.overrides) {
        constexpr std::string_view kPlace = "--override";
        std::size_t equals = override_text.find('=');
        if (equals == std::string::npos || equals == 0) {
            return at(kPlace, {ConfigFault::kInvalidValue,
                               fmt::format("'{}' is not of the form key=value", override_text)});
        }
        std::string name(catalog::trim(std::string_view(override_text).substr(0, equals)));
        KAAS_TRY(put(merged, kPlace, name, override_text.substr(equals + 1)));
    }
    return {};
}

/// Why a config of a family does nothing; empty when it does what it says.
std::string_view fault_of_family(std::string_view name) {
    if (is_volume_config(name)) return {};
    const std::string_view of_all = catalog::base_of_listener_config(name);
    const ConfigDefinition* definition =
        catalog::broker_configs().find(of_all.empty() ? "authorizer.class.name" : of_all);
    if (definition->meaning == catalog::Meaning::kServed)
        return "Settings of one listener alone are not part of this version.";
    return definition->reason;
}

/// "settings without effect: broker.id, log.preallocate (...)", once for each reason.
void add_notes(MergedConfig& merged) {
    std::map<std::string_view, std::vector<std::string_view>> by_reason;
    for (const auto& [name, text] : merged.known) {
        const ConfigDefinition* definition = catalog::broker_configs().find(name);
        if (definition->meaning == catalog::Meaning::kServed) continue;
        by_reason[definition->reason].push_back(name);
    }
    for (const auto& [name, text] : merged.families) {
        if (const auto why = fault_of_family(name); !why.empty()) by_reason[why].push_back(name);
    }
    for (const auto& [why, names] : by_reason) {
        merged.notes.push_back(fmt::format("{} without effect: {} ({})",
                                           names.size() == 1 ? "a setting" : "settings",
                                           fmt::join(names, ", "), why));
    }
}

}  // namespace

ConfigResult<MergedConfig> merge(const ConfigInputs& inputs) {
    MergedConfig merged;
    KAAS_TRY(merge_file(merged, inputs));
    KAAS_TRY(merge_environment(merged, inputs));
    KAAS_TRY(merge_overrides(merged, inputs));
    add_notes(merged);
    return merged;
}

}  // namespace kaas::broker
