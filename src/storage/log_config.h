#pragma once

#include "wire/compression.h"
#include "wire/record_batch.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

namespace kaas::storage {

/// What a topic's configuration says to its logs. A value; a log swaps in a new one as a whole.
/// Source of names and defaults: Apache `LogConfig`; `flush.messages` is 1 here, the honest
/// promise.
struct LogConfig {
    static constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();
    /// Apache's largest `max.decompressed.message.bytes`: no record is larger.
    static constexpr std::int32_t kAnyRecordBytes = std::numeric_limits<std::int32_t>::max() - 8;

    std::int32_t segment_bytes = 1024 * 1024 * 1024;
    std::int64_t segment_ms = 7LL * 24 * 3600 * 1000;
    std::int64_t segment_jitter_ms = 0;
    std::int32_t segment_index_bytes = 10 * 1024 * 1024;
    std::int32_t index_interval_bytes = 4096;
    std::int32_t max_message_bytes = 1024 * 1024 + 12;
    /// 1: every commit cycle ends in a flush. More: a flush once so many records are unflushed.
    std::int64_t flush_messages = 1;
    /// A cycle flushes when the last flush is so long ago.
    std::int64_t flush_ms = kNoLimit;
    wire::TimestampType timestamp_type = wire::TimestampType::kCreateTime;
    std::int64_t timestamp_before_max_ms = kNoLimit;
    std::int64_t timestamp_after_max_ms = 3600 * 1000;
    /// Codec that batches are kept in; without one, as their producer packed them.
    std::optional<wire::Compression> compression{};
    std::optional<int> compression_level{};  ///< of that codec; without one, its default
    bool compacted = false;                  ///< records without a key are refused
    bool deletes = true;  ///< old segments go by `retention_ms` and `retention_bytes`
    std::int64_t retention_ms = 7LL * 24 * 3600 * 1000;  ///< negative: for ever
    std::int64_t retention_bytes = -1;                   ///< negative: without limit
    /// How long the files of a segment stay once it has left the log.
    std::int64_t file_delete_delay_ms = 60'000;
    /// How long tombstones and markers stay in a compacted log.
    std::int64_t delete_retention_ms = 24LL * 3600 * 1000;
    std::int64_t min_compaction_lag_ms = 0;
    std::int64_t max_compaction_lag_ms = kNoLimit;
    double min_cleanable_ratio = 0.5;  ///< `min.cleanable.dirty.ratio`
    bool validate_records = false;     ///< `record.validation=full`: every batch is decoded
    /// Of one record of a packed batch; with a limit, every packed batch is decoded.
    std::int32_t max_decompressed_message_bytes = kAnyRecordBytes;
    /// `producer.id.expiration.ms`: a producer silent for so long is forgotten.
    std::int64_t producer_id_expiration_ms = 24LL * 3600 * 1000;

    /// After so long a segment is closed; in a compacted log also so that its records come in turn.
    [[nodiscard]] std::int64_t segment_lasts_ms() const {
        return compacted ? std::min(segment_ms, max_compaction_lag_ms) : segment_ms;
    }
};

/// A configuration that the logs of a topic share: a value, as far as they can tell.
class SharedLogConfig {
public:
    SharedLogConfig() : SharedLogConfig(LogConfig{}) {}
    // NOLINTNEXTLINE(google-explicit-constructor): it stands wherever the value did
    SharedLogConfig(const LogConfig& config) : config_(std::make_shared<const LogConfig>(config)) {}
    // NOLINTNEXTLINE(google-explicit-constructor): as above
    SharedLogConfig(std::shared_ptr<const LogConfig> config) : config_(std::move(config)) {}

    const LogConfig& operator*() const { return *config_; }
    const LogConfig* operator->() const { return config_.get(); }
    [[nodiscard]] const std::shared_ptr<const LogConfig>& pointer() const { return config_; }

private:
    std::shared_ptr<const LogConfig> config_;
};

}  // namespace kaas::storage
