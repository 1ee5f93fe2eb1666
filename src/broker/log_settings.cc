#include "broker/log_settings.h"

#include <chrono>

namespace kaas::broker {

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
    to.flush_messages = from.flush_messages;
    to.flush_ms = from.flush_ms.count();
    to.timestamp_type = from.message_timestamp_type == "LogAppendTime"
                            ? wire::TimestampType::kLogAppendTime
                            : wire::TimestampType::kCreateTime;
    to.timestamp_before_max_ms = from.message_timestamp_before_max_ms.count();
    to.timestamp_after_max_ms = from.message_timestamp_after_max_ms.count();
    to.compacted = topic.compacts();
    to.deletes = topic.deletes();
    to.retention_ms = from.retention_ms.count();
    to.retention_bytes = from.retention_bytes;
    to.file_delete_delay_ms = from.file_delete_delay_ms.count();
    to.validate_records = from.record_validation == "full";
    to.producer_id_expiration_ms = producer_id_expiration.count();
    return to;
}

}  // namespace kaas::broker
