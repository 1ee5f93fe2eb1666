#pragma once

#include "broker/call.h"
#include "wire/messages/describe_producers.h"

namespace kaas::broker {

/// Api 61: the producers that the logs of partitions know.
[[nodiscard]] wire::DescribeProducersResponse describe_producers(
    const Call& call, const wire::DescribeProducersRequest& request);

}  // namespace kaas::broker
