#include "broker/log_settings.h"

#include "wire/compression.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace kaas::broker {

namespace {

/// `producer` names none.
std::optional<wire::Compression> codec_of(std::string_view compression_type) {
    using wire::Compression;
    if (compression_type == "uncompressed") return Compression::kNone;
    for (const auto codec :
         {Compression::kGzip, Compression::kSnappy, Compression::kLz4, Compression::kZstd}) {
        if (compression_type == wire::to_string(codec)) return codec;
    }
    return std::nullopt;
}

/// Where a level stands for the codec's default, as -1 does for gzip, that is what it is.
std::optional<int> level_of(const catalog::TopicSettings& from,
                            std::optional<wire::Compression> codec) {
    constexpr int kDefaultGzip = -1;
    constexpr int kDefaultLz4 = 9;  // lz4-java's fast compressor, whatever the number says
    if (codec == wire::Compression::kGzip && from.compression_gzip_level != kDefaultGzip)
        return from.compression_gzip_level;
    if (codec == wire::Compression::kLz4 && from.compression_lz4_level != kDefaultLz4)
        return from.compression_lz4_level;
    if (codec == wire::Compression::kZstd) return from.compression_zstd_level;
    return std::nullopt;
}

}  // namespace

storage::LogConfig to_log_config(const catalog::TopicConfig& topic,
                                 std::chrono::milliseconds producer_id_expiration) {
    const catalog::TopicSettings& from = topic.settings;
    storage::LogConfig to;
    to.segment_bytes = from.internal_segment_bytes.value_or(from.segment_bytes);
    to.segment_ms = from.segment_ms.count();
    to.segment_jitter_ms = from.segment_jitter_ms.count();
    to.segment_index_bytes = from.segment_index_bytes;
    to.index_interval_bytes = from.index_interval_bytes;
    to.max_message_bytes = from.max_message_bytes;
    to.max_decompressed_message_bytes = from.max_decompressed_message_bytes;
    to.flush_messages = from.flush_messages;
    to.flush_ms = from.flush_ms.count();
    to.timestamp_type = from.message_timestamp_type == "LogAppendTime"
                            ? wire::TimestampType::kLogAppendTime
                            : wire::TimestampType::kCreateTime;
    to.timestamp_before_max_ms = from.message_timestamp_before_max_ms.count();
    to.timestamp_after_max_ms = from.message_timestamp_after_max_ms.count();
    to.compression = codec_of(from.compression_type);
    to.compression_level = level_of(from, to.compression);
    to.compacted = topic.compacts();
    to.delete_retention_ms = from.delete_retention_ms.count();
    to.min_compaction_lag_ms = from.min_compaction_lag_ms.count();
    to.max_compaction_lag_ms = from.max_compaction_lag_ms.count();
    to.min_cleanable_ratio = from.min_cleanable_dirty_ratio;
    to.deletes = topic.deletes();
    to.retention_ms = from.retention_ms.count();
    to.retention_bytes = from.retention_bytes;
    to.file_delete_delay_ms = from.file_delete_delay_ms.count();
    to.validate_records = from.record_validation == "full";
    to.producer_id_expiration_ms = producer_id_expiration.count();
    return to;
}

storage::CleanerConfig to_cleaner_config(const catalog::BrokerSettings& from) {
    return {.threads = static_cast<std::size_t>(from.log_cleaner_threads),
            .dedupe_buffer_bytes = static_cast<std::uint64_t>(from.log_cleaner_dedupe_buffer_size),
            .dedupe_load_factor = from.log_cleaner_io_buffer_load_factor,
            .io_buffer_bytes = static_cast<std::size_t>(from.log_cleaner_io_buffer_size),
            .io_max_bytes_per_second = from.log_cleaner_io_max_bytes_per_second,
            .backoff = from.log_cleaner_backoff_ms};
}

}  // namespace kaas::broker
