#pragma once

#include "catalog/config/definition.h"
#include "catalog/config/topic_config.h"
#include "catalog/config/values.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// The answers of DescribeConfigs (API 32), without the wire. The handler copies them field by
/// field.
namespace kaas::catalog {

/// Where a value comes from; the numbers are those of the wire (Apache
/// `DescribeConfigsResponse.ConfigSource`).
enum class ConfigSource : std::int8_t {
    kDynamicTopic = 1,
    kDynamicBroker = 2,
    kDynamicDefaultBroker = 3,
    kStaticBroker = 4,
    kDefault = 5,
    kDynamicBrokerLogger = 6,
    kClientMetrics = 7,
    kGroup = 8,
};

/// What is set on a broker, the strongest first. Names may be of the families that no table lists.
struct BrokerLayers {
    ConfigMap dynamic_broker{};
    ConfigMap dynamic_default{};
    ConfigMap static_broker{};
};

/// What is in force of all layers together. A dynamic value also silences what stands in for its
/// config: log.retention.ms set dynamically undoes log.retention.hours in a file (Apache
/// `overrideProps`).
[[nodiscard]] ConfigMap effective_texts(const BrokerLayers& layers);

/// One place where a config, or one that stands in for it, has a value.
struct ConfigSynonym {
    std::string name;
    std::optional<std::string> value;  ///< empty when it is secret
    ConfigSource source;

    friend bool operator==(const ConfigSynonym&, const ConfigSynonym&) = default;
};

struct DescribedConfig {
    std::string name;
    std::optional<std::string> value;  ///< empty for null, and when it is secret
    ConfigSource source = ConfigSource::kDefault;
    std::int8_t type = 0;  ///< a ConfigType, or 0 when it is not known
    bool read_only = false;
    bool sensitive = false;
    std::vector<ConfigSynonym> synonyms;       ///< empty unless asked for
    std::optional<std::string> documentation;  ///< empty unless asked for
};

struct DescribeOptions {
    std::vector<std::string> names{};  ///< only these; empty means all
    bool synonyms = false;
    bool documentation = false;
};

/// `own` are the topic's own configs, from which `topic` was resolved.
[[nodiscard]] std::vector<DescribedConfig> describe_topic(const TopicConfig& topic,
                                                          const ConfigMap& own,
                                                          const BrokerLayers& layers,
                                                          const DescribeOptions& options);

/// One broker: every config that is not internal, and whatever else is set. `values` are those of
/// broker_configs() with all layers applied.
[[nodiscard]] std::vector<DescribedConfig> describe_broker(const ConfigValues& values,
                                                           const BrokerLayers& layers,
                                                           const DescribeOptions& options);

/// The default of all brokers (resource name ""): only what is set for all of them dynamically.
[[nodiscard]] std::vector<DescribedConfig> describe_broker_default(const BrokerLayers& layers,
                                                                   const DescribeOptions& options);

/// `own` are the group's own configs; they need not exist.
[[nodiscard]] std::vector<DescribedConfig> describe_group(const ConfigMap& own,
                                                          const ConfigValues& broker,
                                                          const BrokerLayers& layers,
                                                          const DescribeOptions& options);

[[nodiscard]] std::vector<DescribedConfig> describe_client_metrics(const ConfigMap& own,
                                                                   const DescribeOptions& options);

}  // namespace kaas::catalog
