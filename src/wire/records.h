#pragma once

#include "base/bytes.h"
#include "base/metrics.h"
#include "wire/compression.h"
#include "wire/error.h"
#include "wire/record_batch.h"
#include "wire/types.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace kaas::wire {

/// A place in our code that looks inside batches. The hot path has none: batches are opaque there,
/// and the counters of all sites prove it (`kaas_codec_record_decode_total`, label `site`). Thread:
/// any.
class DecodeSite {
public:
    /// `name` says what for, such as "time_index"; the registry must outlive the site.
    DecodeSite(base::metrics::Registry& registry, std::string_view name);

    void count(std::uint64_t records) { decoded_.add(records); }
    [[nodiscard]] std::uint64_t decoded() const { return decoded_.value(); }

private:
    base::metrics::Counter& decoded_;
};

struct RecordHeader {
    std::string_view key;
    std::optional<ByteView> value;

    friend bool operator==(const RecordHeader& a, const RecordHeader& b);
};

/// One record; borrows from the batch, or from its reader where that had to unpack.
struct Record {
    std::int64_t offset = 0;
    std::int64_t timestamp_ms = -1;
    std::int32_t sequence = -1;
    std::optional<ByteView> key;
    std::optional<ByteView> value;
    std::vector<RecordHeader> headers;

    friend bool operator==(const Record& a, const Record& b);
};

/// The records of one batch, one behind the other, without its header. Moves with its memory.
struct UnpackedRecords {
    std::vector<std::byte> unpacked{};  ///< empty when the batch's own bytes are as good
    ByteView bytes{};
};

/// Unpacks where needed, and counts at `site`. Does not compare the checksum. Errors: as
/// `decompress`; kInvalid for a negative count.
[[nodiscard]] Result<UnpackedRecords> unpack_records(const BatchView& batch, DecodeSite& site,
                                                     std::size_t limit_bytes);

/// What a reader takes of a packed batch.
struct UnpackLimits {
    std::size_t batch_bytes = kUnpackedBytesMax;
    /// Of one record, behind its length (Apache: `max.decompressed.message.bytes`).
    std::int32_t record_bytes = std::numeric_limits<std::int32_t>::max();
};

/// Reads the records of one batch, in order.
/// Thread: one at a time. Records that it gave die with it (or with the batch).
class RecordReader {
public:
    /// Errors: as `unpack_records`.
    [[nodiscard]] static Result<RecordReader> open(const BatchView& batch, DecodeSite& site,
                                                   UnpackLimits limits = {});

    /// Puts the next record into `record`, whose memory for headers is used again; false behind the
    /// last. Errors: kInvalid for what is not a record or is above the limit, for fewer records
    /// than the header counts, and for bytes behind the last one (Apache: INVALID_RECORD).
    [[nodiscard]] Result<bool> next(Record& record);

private:
    RecordReader(const BatchHeader& header, UnpackedRecords records, std::int32_t record_bytes_max);

    BatchHeader header_;
    std::vector<std::byte> unpacked_;
    ByteView rest_;
    std::int32_t left_;
    std::int32_t record_bytes_max_;
};

/// Builds one v2 batch. Ours writes what Apache's `MemoryRecordsBuilder` would, up to the codecs'
/// choices.
class BatchBuilder {
public:
    struct Options {
        std::int64_t base_offset = 0;
        std::int32_t partition_leader_epoch = -1;
        Compression compression = Compression::kNone;
        TimestampType timestamp_type = TimestampType::kCreateTime;
        std::int64_t log_append_time_ms = -1;  ///< of all records, under kLogAppendTime
        std::int64_t producer_id = BatchHeader::kNoProducerId;
        std::int16_t producer_epoch = -1;
        std::int32_t base_sequence = BatchHeader::kNoSequence;
        bool transactional = false;
        bool control = false;
    };

    explicit BatchBuilder(const Options& options) : options_(options) {}

    /// Appends a record one offset behind the last.
    void add(std::int64_t timestamp_ms, std::optional<ByteView> key, std::optional<ByteView> value,
             std::span<const RecordHeader> headers = {});
    /// Appends a record at an offset of its own, above the last: what compaction leaves has gaps.
    void add_at(std::int64_t offset, std::int64_t timestamp_ms, std::optional<ByteView> key,
                std::optional<ByteView> value, std::span<const RecordHeader> headers = {});

    [[nodiscard]] std::int32_t count() const { return count_; }
    /// The whole batch. Records may go on being added; each call builds anew.
    [[nodiscard]] std::vector<std::byte> build() const;

private:
    Options options_;
    std::vector<std::byte> records_;
    std::int32_t count_ = 0;
    std::int32_t last_offset_delta_ = -1;
    std::int64_t base_timestamp_ = -1;
    std::int64_t max_timestamp_ = -1;
};

}  // namespace kaas::wire
