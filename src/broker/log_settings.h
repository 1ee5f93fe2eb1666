#pragma once

#include "catalog/config/topic_config.h"
#include "storage/log_config.h"

#include <chrono>

namespace kaas::broker {

/// What a topic's configuration says to the logs of its partitions.
[[nodiscard]] storage::LogConfig to_log_config(const catalog::TopicConfig& topic,
                                               std::chrono::milliseconds producer_id_expiration);

}  // namespace kaas::broker
