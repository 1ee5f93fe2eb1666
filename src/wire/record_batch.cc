#include "wire/record_batch.h"

#include "base/assert.h"
#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/result.h"
#include "wire/compression.h"
#include "wire/error.h"
#include "wire/types.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <limits>
#include <optional>
#include <string>
#include <utility>

namespace kaas::wire {
namespace {

constexpr std::size_t kMagicAt = 16;
constexpr std::size_t kAttributesAt = 21;
constexpr std::size_t kMaxTimestampAt = 35;
constexpr std::uint16_t kLogAppendTimeFlag = 0x08;
constexpr std::uint16_t kDeleteHorizonFlag = 0x40;

// Apache `LegacyRecord.RECORD_OVERHEAD_V0`: below it a length is corrupt in every format.
constexpr std::int64_t kOldestOverhead = 14;

std::unexpected<Error> corrupt(std::string context) {
    return base::fail(CodecError::kCorrupt, std::move(context));
}

std::uint32_t crc_of(ByteView batch) { return base::crc32c(batch.subspan(BatchHeader::kCrcFrom)); }

}  // namespace

Result<BatchHeader> BatchHeader::parse(ByteView bytes) {
    if (bytes.size() <= kMagicAt) {
        return base::fail(CodecError::kTruncated,
                          fmt::format("{} bytes are no batch header", bytes.size()));
    }
    const std::byte* at = bytes.data();
    const auto length = base::load_be<std::int32_t>(at + 8);
    const auto magic = base::load_be<std::int8_t>(at + kMagicAt);
    if (length < kOldestOverhead) return corrupt(fmt::format("a batch length of {}", length));
    if (magic < 0 || magic > kMagic) return corrupt(fmt::format("a batch of magic {}", magic));
    if (magic < kMagic) {
        return base::fail(CodecError::kUnsupportedMagic, fmt::format("a batch of magic {}", magic));
    }
    if (kLengthEnd + static_cast<std::size_t>(length) < kBytes) {
        return corrupt(fmt::format("a batch length of {}", length));
    }
    if (bytes.size() < kBytes) {
        return base::fail(CodecError::kTruncated,
                          fmt::format("{} bytes are no batch header", bytes.size()));
    }
    return BatchHeader{
        .base_offset = base::load_be<std::int64_t>(at),
        .length = length,
        .partition_leader_epoch = base::load_be<std::int32_t>(at + 12),
        .magic = magic,
        .crc = base::load_be<std::uint32_t>(at + kCrcAt),
        .attributes = base::load_be<std::uint16_t>(at + kAttributesAt),
        .last_offset_delta = base::load_be<std::int32_t>(at + 23),
        .base_timestamp = base::load_be<std::int64_t>(at + 27),
        .max_timestamp = base::load_be<std::int64_t>(at + kMaxTimestampAt),
        .producer_id = base::load_be<std::int64_t>(at + 43),
        .producer_epoch = base::load_be<std::int16_t>(at + 51),
        .base_sequence = base::load_be<std::int32_t>(at + 53),
        .count = base::load_be<std::int32_t>(at + 57),
    };
}

std::int32_t sequence_after(std::int32_t sequence, std::int32_t steps) {
    constexpr std::int64_t kModulus = std::int64_t{std::numeric_limits<std::int32_t>::max()} + 1;
    return static_cast<std::int32_t>((std::int64_t{sequence} + steps) % kModulus);
}

std::int32_t BatchHeader::last_sequence() const {
    return base_sequence == kNoSequence ? kNoSequence
                                        : sequence_after(base_sequence, last_offset_delta);
}

std::optional<std::int64_t> BatchHeader::delete_horizon_ms() const {
    if ((attributes & kDeleteHorizonFlag) == 0) return std::nullopt;
    return base_timestamp;
}

Result<BatchView> first_batch(ByteView bytes) {
    KAAS_TRY_ASSIGN(header, BatchHeader::parse(bytes));
    if (header.size() > bytes.size()) {
        return base::fail(
            CodecError::kTruncated,
            fmt::format("a batch of {} bytes, of which {} are there", header.size(), bytes.size()));
    }
    return BatchView{.header = header, .bytes = bytes.first(header.size())};
}

Result<void> check_crc(const BatchView& batch) {
    const std::uint32_t computed = crc_of(batch.bytes);
    if (computed == batch.header.crc) return {};
    return corrupt(
        fmt::format("checksum {:#010x} where {:#010x} is computed", batch.header.crc, computed));
}

Result<void> check_from_client(const BatchHeader& header) {
    auto invalid = [](std::string context) {
        return base::fail(CodecError::kInvalid, std::move(context));
    };
    if (header.last_offset_delta < 0) {
        return invalid(fmt::format("a last offset delta of {}", header.last_offset_delta));
    }
    if (header.count <= 0) return invalid(fmt::format("a record count of {}", header.count));
    if (header.count != std::int64_t{header.last_offset_delta} + 1) {
        return invalid(fmt::format("{} records with a last offset delta of {}", header.count,
                                   header.last_offset_delta));
    }
    if (header.control()) return invalid("a control batch from a client");
    if (header.has_producer_id() && header.base_sequence < 0) {
        return invalid(
            fmt::format("sequence {} of producer {}", header.base_sequence, header.producer_id));
    }
    if (header.compression() > Compression::kZstd) {
        return base::fail(CodecError::kCompression,
                          fmt::format("unknown codec {}", header.attributes & 0x07));
    }
    return {};
}

void set_base_offset(MutableBytes batch, std::int64_t offset) {
    KAAS_ASSERT(batch.size() >= BatchHeader::kBytes);
    base::store_be(batch.data(), offset);
}

void set_partition_leader_epoch(MutableBytes batch, std::int32_t epoch) {
    KAAS_ASSERT(batch.size() >= BatchHeader::kBytes);
    base::store_be(batch.data() + BatchHeader::kLengthEnd, epoch);
}

void set_log_append_time(MutableBytes batch, std::int64_t timestamp_ms) {
    KAAS_ASSERT(batch.size() >= BatchHeader::kBytes);
    std::byte* at = batch.data();
    auto attributes = base::load_be<std::uint16_t>(at + kAttributesAt);
    base::store_be(at + kAttributesAt, static_cast<std::uint16_t>(attributes | kLogAppendTimeFlag));
    base::store_be(at + kMaxTimestampAt, timestamp_ms);
    base::store_be(at + BatchHeader::kCrcAt, crc_of(batch));
}

}  // namespace kaas::wire
