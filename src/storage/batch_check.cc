#include "storage/batch_check.h"

#include "base/crc32c.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kaas::storage {
namespace {

constexpr std::size_t kAttributesAt = 21;
constexpr std::size_t kMaxTimestampAt = 35;
constexpr std::uint16_t kAppendTimeBit = 0x08;
constexpr std::int64_t kNoTimestamp = -1;
/// Small records pack so well that one batch may hold tens of millions; a client learns enough from
/// these.
constexpr std::size_t kFaultsMax = 1000;

[[nodiscard]] ErrorCode to_code(wire::CodecError code) {
    switch (code) {
        case wire::CodecError::kCorrupt: return ErrorCode::kCorruptBatch;
        case wire::CodecError::kCompression: return ErrorCode::kUnknownCodec;
        case wire::CodecError::kTooLarge: return ErrorCode::kTooLarge;
        case wire::CodecError::kTruncated:
        case wire::CodecError::kInvalid:
        case wire::CodecError::kUnknownApi:
        case wire::CodecError::kUnsupportedVersion:
        case wire::CodecError::kUnsupportedField:
        case wire::CodecError::kUnsupportedMagic: return ErrorCode::kInvalidRecord;
    }
    return ErrorCode::kInvalidRecord;
}

template <class T>
[[nodiscard]] Result<T> translate(wire::Result<T> result) {
    if (result) return Result<T>(std::move(result).value());
    auto error = std::move(result).error();
    return fail(to_code(error.code), std::move(error.context));
}
[[nodiscard]] Result<void> translate(wire::Result<void> result) {
    if (result) return {};
    auto error = std::move(result).error();
    return fail(to_code(error.code), std::move(error.context));
}

[[nodiscard]] Result<wire::BatchView> only_batch(base::ByteView records) {
    KAAS_TRY_ASSIGN(batch, translate(wire::first_batch(records)));
    // What is cut off behind a batch Apache never sees: its iterator finds no whole batch there.
    const auto rest = records.subspan(batch.bytes.size());
    if (rest.empty()) return batch;  // nearly always, and cheaper than an error that is dropped
    const auto second = wire::first_batch(rest);
    if (second || second.error().code == wire::CodecError::kUnsupportedMagic) {
        return fail(ErrorCode::kInvalidRecord, "more than one record batch for a partition");
    }
    if (second.error().code == wire::CodecError::kCorrupt) {
        return fail(ErrorCode::kCorruptBatch, second.error().context);
    }
    return batch;
}

/// The times that a topic takes, as limits that never wrap.
struct TimeRange {
    std::int64_t earliest_ms;
    std::int64_t latest_ms;

    TimeRange(const LogConfig& config, std::int64_t now_ms) {
        if (__builtin_sub_overflow(now_ms, config.timestamp_before_max_ms, &earliest_ms)) {
            earliest_ms = std::numeric_limits<std::int64_t>::min();
        }
        if (__builtin_add_overflow(now_ms, config.timestamp_after_max_ms, &latest_ms)) {
            latest_ms = std::numeric_limits<std::int64_t>::max();
        }
    }
};

/// Looks at times and keys of every record, as Apache does.
class RecordInspector {
public:
    RecordInspector(const wire::BatchView& batch, const LogConfig& config, std::int64_t now_ms)
        : batch_(batch), config_(config), range_(config, now_ms) {}

    [[nodiscard]] Result<void> run(wire::DecodeSite& site, std::vector<RecordFault>* faults) {
        KAAS_TRY_ASSIGN(
            reader, translate(wire::RecordReader::open(
                        batch_, site, {.record_bytes = config_.max_decompressed_message_bytes})));
        wire::Record record;
        for (std::int32_t index = 0;; ++index) {
            KAAS_TRY_ASSIGN(more, translate(reader.next(record)));
            if (!more) break;
            max_timestamp_ms_ = std::max(max_timestamp_ms_, record.timestamp_ms);
            auto why = fault_of(record, index);
            if (why.empty()) continue;
            ++refused_;
            if (faults_.size() < kFaultsMax) faults_.push_back({index, std::move(why)});
        }
        if (refused_ == 0) return {};
        const auto code = bad_time_ ? ErrorCode::kInvalidTimestamp : ErrorCode::kInvalidRecord;
        auto context = fmt::format("{} records refused, the first: {}", refused_, faults_[0].why);
        if (faults != nullptr) *faults = std::move(faults_);
        return fail(code, std::move(context));
    }

    [[nodiscard]] std::int64_t max_timestamp_ms() const { return max_timestamp_ms_; }

private:
    [[nodiscard]] std::string fault_of(const wire::Record& record, std::int32_t index) {
        const bool packed = batch_.header.compression() != wire::Compression::kNone;
        if (packed && record.offset != batch_.header.base_offset + index)
            return fmt::format("offset {} where {} is next", record.offset,
                               batch_.header.base_offset + index);
        if (config_.compacted && !record.key)
            return "a compacted topic takes no record without key";
        if (config_.timestamp_type == wire::TimestampType::kCreateTime &&
            record.timestamp_ms != kNoTimestamp) {
            const auto time = record.timestamp_ms;
            if (time >= range_.earliest_ms && time <= range_.latest_ms) return {};
            bad_time_ = true;
            return fmt::format("timestamp {} is not within [{}, {}]", time, range_.earliest_ms,
                               range_.latest_ms);
        }
        if (batch_.header.timestamp_type() == wire::TimestampType::kLogAppendTime) {
            bad_time_ = true;
            return "a producer may not set the timestamp type LogAppendTime";
        }
        return {};
    }

    const wire::BatchView& batch_;
    const LogConfig& config_;
    const TimeRange range_;
    std::int64_t max_timestamp_ms_ = kNoTimestamp;
    std::vector<RecordFault> faults_;
    std::size_t refused_ = 0;
    bool bad_time_ = false;
};

/// True when the header alone leaves Apache's verdict open.
[[nodiscard]] bool must_look_inside(const wire::BatchHeader& header, const LogConfig& config,
                                    std::int64_t now_ms) {
    if (config.compacted || config.validate_records) return true;
    if (config.max_decompressed_message_bytes < LogConfig::kAnyRecordBytes &&
        header.compression() != wire::Compression::kNone)
        return true;
    if (config.timestamp_type == wire::TimestampType::kLogAppendTime) {
        return header.timestamp_type() == wire::TimestampType::kLogAppendTime;
    }
    if (header.max_timestamp == kNoTimestamp) return true;
    if (config.timestamp_before_max_ms != LogConfig::kNoLimit) return true;
    return header.max_timestamp > TimeRange(config, now_ms).latest_ms;
}

[[nodiscard]] Result<void> check_message_size(std::size_t bytes, const LogConfig& config) {
    if (std::cmp_less_equal(bytes, config.max_message_bytes)) return {};
    return fail(ErrorCode::kTooLarge, fmt::format("batch of {} bytes, max.message.bytes is {}",
                                                  bytes, config.max_message_bytes));
}

}  // namespace

Result<void> check_size(std::size_t bytes, const LogConfig& config) {
    KAAS_TRY(check_message_size(bytes, config));
    if (std::cmp_less_equal(bytes, config.segment_bytes)) return {};
    return fail(ErrorCode::kTooLarge,
                fmt::format("batch of {} bytes, segment.bytes is {}", bytes, config.segment_bytes));
}

Result<wire::BatchView> check_produced(base::MutableBytes records, const LogConfig& config,
                                       std::int64_t now_ms, wire::DecodeSite& site,
                                       std::vector<RecordFault>* faults) {
    KAAS_TRY_ASSIGN(batch, only_batch(records));
    const auto& header = batch.header;
    const auto bytes = batch.bytes.size();
    if (header.base_offset != 0) {
        return fail(ErrorCode::kInvalidRecord, fmt::format("base offset {}", header.base_offset));
    }
    KAAS_TRY(check_message_size(bytes, config));
    KAAS_TRY(translate(wire::check_crc(batch)));
    KAAS_TRY(translate(wire::check_from_client(header)));
    auto max_timestamp_ms = header.max_timestamp;
    if (must_look_inside(header, config, now_ms)) {
        RecordInspector inspector(batch, config, now_ms);
        KAAS_TRY(inspector.run(site, faults));
        max_timestamp_ms = inspector.max_timestamp_ms();
    }
    KAAS_TRY(check_size(bytes, config));
    const auto kept = records.first(bytes);
    if (config.timestamp_type == wire::TimestampType::kLogAppendTime) {
        wire::set_log_append_time(kept, now_ms);
    } else if (header.timestamp_type() == wire::TimestampType::kLogAppendTime ||
               header.max_timestamp != max_timestamp_ms) {
        set_create_time(kept, max_timestamp_ms);
    } else {
        return batch;
    }
    return translate(wire::first_batch(kept));
}

Result<wire::BatchView> check_stored(base::ByteView bytes) {
    const auto corrupt = [](std::string_view why) {
        return fail(ErrorCode::kCorrupt, std::string(why));
    };
    const auto batch = wire::first_batch(bytes);
    if (!batch) return corrupt(batch.error().context);
    if (const auto checked = wire::check_crc(*batch); !checked)
        return corrupt(checked.error().context);
    if (batch->header.base_offset < 0 || batch->header.last_offset_delta < 0 ||
        batch->header.last_offset() < batch->header.base_offset ||
        batch->header.last_offset() == std::numeric_limits<std::int64_t>::max()) {
        return corrupt(fmt::format("offsets {} and {} more", batch->header.base_offset,
                                   batch->header.last_offset_delta));
    }
    return *batch;
}

void set_create_time(base::MutableBytes batch, std::int64_t max_timestamp_ms) {
    const auto attributes = base::load_be<std::uint16_t>(batch.data() + kAttributesAt);
    base::store_be(batch.data() + kAttributesAt,
                   static_cast<std::uint16_t>(attributes & ~kAppendTimeBit));
    base::store_be(batch.data() + kMaxTimestampAt, max_timestamp_ms);
    base::store_be(batch.data() + wire::BatchHeader::kCrcAt,
                   base::crc32c(batch.subspan(wire::BatchHeader::kCrcFrom)));
}

}  // namespace kaas::storage
