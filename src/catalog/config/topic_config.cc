#include "catalog/config/topic_config.h"

#include "base/result.h"
#include "catalog/config/definition.h"
#include "catalog/config/error.h"
#include "catalog/config/value.h"
#include "catalog/config/values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace kaas::catalog {
namespace {

/// A broker value in a topic's unit and type. A factor other than 1 turns hours or minutes into the
/// milliseconds of a long.
ConfigValue converted(const ConfigValue& value, std::int64_t factor) {
    if (factor == 1) return value;
    return std::int64_t{std::get<std::int32_t>(value)} * factor;
}

/// Rules between values (Apache `LogConfig.validateTopicLogConfigValues`).
ConfigResult<void> check_together(const ConfigValues& values) {
    auto least = values.get<std::int64_t>("min.compaction.lag.ms");
    auto most = values.get<std::int64_t>("max.compaction.lag.ms");
    if (least > most) {
        return base::fail(
            ConfigFault::kConflict,
            fmt::format("min.compaction.lag.ms ({}) must not be above max.compaction.lag.ms ({})",
                        least, most));
    }
    if (values.get<bool>("remote.storage.enable")) {
        return base::fail(
            ConfigFault::kConflict,
            "remote.storage.enable cannot be true: this broker has no tiered storage");
    }
    return {};
}

}  // namespace

bool TopicConfig::has_policy(std::string_view policy) const {
    return std::ranges::find(settings.cleanup_policy, policy) != settings.cleanup_policy.end();
}

ConfigValues inherited_topic_values(const ConfigValues& broker) {
    ConfigValues topic(topic_configs());
    for (const auto& definition : topic_configs().all()) {
        for (const auto& synonym : definition.broker_synonyms) {
            const ConfigValue& value = broker[synonym.name];
            if (std::holds_alternative<std::monostate>(value)) continue;
            topic.set(definition.name, converted(value, synonym.factor));
            break;
        }
    }
    // Apache counts every negative retention time of a broker as none (`logRetentionTimeMillis`).
    if (topic.get<std::int64_t>("retention.ms") < 0) topic.set("retention.ms", std::int64_t{-1});
    return topic;
}

ConfigResult<TopicConfig> resolve_topic_config(const ConfigMap& own, const ConfigValues& broker) {
    KAAS_TRY_ASSIGN(given, ConfigValues::parse(topic_configs(), own));
    ConfigValues values = inherited_topic_values(broker);
    for (const auto& [name, text] : own) values.set(name, given[name]);
    KAAS_TRY(check_together(values));
    TopicSettings settings = TopicSettings::from(values);
    return TopicConfig{.values = std::move(values), .settings = std::move(settings)};
}

}  // namespace kaas::catalog
