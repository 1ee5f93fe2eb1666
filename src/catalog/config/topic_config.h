#pragma once

#include "catalog/config/error.h"
#include "catalog/config/topic_settings.h"
#include "catalog/config/values.h"

#include <string_view>

namespace kaas::catalog {

/// What is in force for one topic.
struct TopicConfig {
    ConfigValues values;     ///< every topic config, by name
    TopicSettings settings;  ///< those that are served, typed

    [[nodiscard]] bool compacts() const { return has_policy("compact"); }
    [[nodiscard]] bool deletes() const { return has_policy("delete"); }

private:
    [[nodiscard]] bool has_policy(std::string_view policy) const;
};

/// What topics inherit: the value of each topic config's first broker synonym that is set, in the
/// topic's unit (Apache `KafkaConfig.extractLogConfigMap`). `broker` are values of
/// broker_configs().
[[nodiscard]] ConfigValues inherited_topic_values(const ConfigValues& broker);

/// Checks a topic's own configs as Apache does at CreateTopics and when they change
/// (`LogConfig.validate`), and completes them. Errors: kUnknownName, kInvalidValue, kConflict; all
/// become INVALID_CONFIG (40).
[[nodiscard]] ConfigResult<TopicConfig> resolve_topic_config(const ConfigMap& own,
                                                             const ConfigValues& broker);

}  // namespace kaas::catalog
