#pragma once

#include "catalog/config/broker_settings.h"
#include "catalog/config/topic_config.h"
#include "storage/log_cleaner.h"
#include "storage/log_config.h"

#include <chrono>

namespace kaas::broker {

/// What a topic's configuration says to the logs of its partitions.
[[nodiscard]] storage::LogConfig to_log_config(const catalog::TopicConfig& topic,
                                               std::chrono::milliseconds producer_id_expiration);

/// What `log.cleaner.*` say to the threads that compact.
[[nodiscard]] storage::CleanerConfig to_cleaner_config(const catalog::BrokerSettings& broker);

}  // namespace kaas::broker
