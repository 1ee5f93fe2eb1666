#include "broker/handlers/config_layers.h"

#include <expected>
#include <vector>

namespace kaas::broker {

catalog::BrokerLayers broker_layers(const Services& services) {
    auto image = services.node.partitions().image();
    return {.dynamic_broker = image->broker_configs(services.node.id()),
            .dynamic_default = image->broker_configs(catalog::kNoBroker),
            .static_broker = services.config.given};
}

catalog::ConfigResult<std::vector<catalog::DescribedConfig>> describe_topic_configs(
    const Services& services, const catalog::ConfigMap& own,
    const catalog::DescribeOptions& options) {
    auto topic = catalog::resolve_topic_config(own, services.config.values);
    if (!topic) return std::unexpected(topic.error());
    return catalog::describe_topic(*topic, own, broker_layers(services), options);
}

}  // namespace kaas::broker
