#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace kaas::coordinator {

/// The configs of groups and offsets that count here; defaults are Apache's
/// (`GroupCoordinatorConfig`, `TransactionStateManagerConfig`).
struct GroupConfig {
    std::chrono::milliseconds initial_rebalance_delay{3'000};  ///< group.initial.rebalance.delay.ms
    std::size_t max_size = std::numeric_limits<std::int32_t>::max();  ///< group.max.size
    std::size_t offset_metadata_max_bytes = 4'096;                    ///< offset.metadata.max.bytes
    /// max.message.bytes of `__consumer_offsets`
    std::size_t record_max_bytes = std::size_t{1024} * 1024 + 12;
    std::chrono::milliseconds offsets_retention = std::chrono::minutes(10'080);
    std::chrono::milliseconds retention_check_interval{600'000};
    std::chrono::milliseconds producer_expiration{86'400'000};  ///< producer.id.expiration.ms
};

}  // namespace kaas::coordinator
