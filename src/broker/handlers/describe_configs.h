#pragma once

#include "broker/call.h"
#include "wire/messages/describe_configs.h"

namespace kaas::broker {

/// DescribeConfigs (32): of topics, and of this broker or the default of all brokers, with their
/// sources, synonyms and documentation (KIP-226, KIP-569).
[[nodiscard]] wire::DescribeConfigsResponse describe_configs(
    const Call& call, const wire::DescribeConfigsRequest& request);

}  // namespace kaas::broker
