#pragma once

#include "base/bytes.h"
#include "wire/compression.h"
#include "wire/error.h"
#include "wire/types.h"

#include <cstddef>
#include <cstdint>
#include <optional>

namespace kaas::wire {

enum class TimestampType : std::uint8_t { kCreateTime, kLogAppendTime };

/// Sums of numbers from the wire wrap, as Java's do: any bytes may claim to be a header.
[[nodiscard]] constexpr std::int64_t wrapping_sum(std::int64_t a, std::int64_t b) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

/// The fixed part of a v2 record batch (KIP-98): all that the hot path looks at. A copy of the
/// fields, in host order; 61 bytes on the wire.
struct BatchHeader {
    /// Bytes of the fixed part, and where its fields stand (Apache `DefaultRecordBatch`).
    static constexpr std::size_t kBytes = 61;
    static constexpr std::size_t kLengthEnd = 12;  ///< `length` counts what comes after this
    static constexpr std::size_t kCrcAt = 17;
    static constexpr std::size_t kCrcFrom = 21;  ///< the checksum covers from here to the end
    static constexpr std::int8_t kMagic = 2;
    static constexpr std::int64_t kNoProducerId = -1;
    static constexpr std::int32_t kNoSequence = -1;

    std::int64_t base_offset = 0;
    std::int32_t length = 0;
    std::int32_t partition_leader_epoch = -1;
    std::int8_t magic = kMagic;
    std::uint32_t crc = 0;
    std::uint16_t attributes = 0;
    std::int32_t last_offset_delta = 0;
    std::int64_t base_timestamp = -1;
    std::int64_t max_timestamp = -1;
    std::int64_t producer_id = kNoProducerId;
    std::int16_t producer_epoch = -1;
    std::int32_t base_sequence = kNoSequence;
    std::int32_t count = 0;

    /// Reads the header at the start of `bytes`, which may end before the batch does.
    /// Errors: kTruncated when `bytes` hold less than a header; kCorrupt for a length or magic that
    /// no writer gives (Apache: CORRUPT_MESSAGE); kUnsupportedMagic for formats 0 and 1.
    [[nodiscard]] static Result<BatchHeader> parse(ByteView bytes);

    /// Of the whole batch.
    [[nodiscard]] std::size_t size() const { return kLengthEnd + static_cast<std::size_t>(length); }
    [[nodiscard]] std::int64_t last_offset() const {
        return wrapping_sum(base_offset, last_offset_delta);
    }
    /// -1 without a producer's sequence; wraps from 2^31-1 to 0.
    [[nodiscard]] std::int32_t last_sequence() const;
    [[nodiscard]] Compression compression() const { return Compression(attributes & 0x07); }
    [[nodiscard]] TimestampType timestamp_type() const {
        return TimestampType((attributes >> 3) & 1);
    }
    [[nodiscard]] bool transactional() const { return (attributes & 0x10) != 0; }
    [[nodiscard]] bool control() const { return (attributes & 0x20) != 0; }
    [[nodiscard]] bool has_producer_id() const { return producer_id > kNoProducerId; }
    /// When tombstones and markers of a compacted batch may go; it lies in the base timestamp
    /// (KIP-534).
    [[nodiscard]] std::optional<std::int64_t> delete_horizon_ms() const;

    friend bool operator==(const BatchHeader&, const BatchHeader&) = default;
};

/// The sequence number `steps` after `sequence`: they wrap from 2^31-1 to 0.
[[nodiscard]] std::int32_t sequence_after(std::int32_t sequence, std::int32_t steps);

/// A header and the bytes of its whole batch; borrows them.
struct BatchView {
    BatchHeader header;
    ByteView bytes;

    /// The records, packed or not.
    [[nodiscard]] ByteView payload() const { return bytes.subspan(BatchHeader::kBytes); }
};

/// The batch that `bytes` start with. To walk a run of batches, go on behind `bytes` of the result.
/// Errors: as `BatchHeader::parse`; kTruncated when the batch is not all there.
[[nodiscard]] Result<BatchView> first_batch(ByteView bytes);

/// Compares the checksum. Errors: kCorrupt.
[[nodiscard]] Result<void> check_crc(const BatchView& batch);

/// What Apache asks of the header of a batch that a client sends (`LogValidator`): a positive
/// record count that agrees with the offset range, no control batch, a sequence with a producer id.
/// Errors: kInvalid (Apache: INVALID_RECORD); kCompression for an unknown codec.
[[nodiscard]] Result<void> check_from_client(const BatchHeader& header);

// Both fields lie before the checksummed region: a batch stays valid. `batch` holds at least the
// header.
void set_base_offset(MutableBytes batch, std::int64_t offset);
void set_partition_leader_epoch(MutableBytes batch, std::int32_t epoch);
/// Makes `timestamp_ms` the time of all records (LogAppendTime) and the checksum right again;
/// `batch` is exactly one whole batch.
void set_log_append_time(MutableBytes batch, std::int64_t timestamp_ms);

}  // namespace kaas::wire
