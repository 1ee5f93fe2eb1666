#pragma once

#include "broker/services.h"
#include "catalog/config/describe.h"
#include "catalog/config/topic_config.h"

namespace kaas::broker {

/// What is set on this broker, statically and dynamically.
[[nodiscard]] catalog::BrokerLayers broker_layers(const Services& services);

/// What DescribeConfigs tells of a topic with these own configs.
[[nodiscard]] catalog::ConfigResult<std::vector<catalog::DescribedConfig>> describe_topic_configs(
    const Services& services, const catalog::ConfigMap& own,
    const catalog::DescribeOptions& options);

}  // namespace kaas::broker
