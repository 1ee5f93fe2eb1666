#include "wire/batch_rewrite.h"

#include "base/assert.h"
#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/result.h"
#include "wire/compression.h"
#include "wire/error.h"
#include "wire/record_batch.h"
#include "wire/records.h"

#include <fmt/format.h>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace kaas::wire {
namespace {

constexpr std::uint16_t kCodecBits = 0x07;
constexpr std::uint16_t kDeleteHorizonFlag = 0x40;
constexpr std::size_t kVarintBytesMax = 10;

/// Takes varints off a run of bytes. `Reader` with its sticky errors costs three times as much,
/// which is most of what a compaction does.
class Varints {
public:
    explicit Varints(ByteView bytes) : at_(bytes.data()), end_(at_ + bytes.size()) {}

    /// Zigzag; five bytes at most for 32 bits, ten for 64, and what is too much in the last is
    /// dropped, as by `Reader`.
    template <std::signed_integral T>
    [[nodiscard]] bool take(T& value) {
        using Bits = std::make_unsigned_t<T>;
        constexpr unsigned kBits = sizeof(T) * 8;
        Bits bits = 0;
        for (unsigned shift = 0; at_ != end_ && shift < kBits; shift += 7) {
            const auto byte = static_cast<std::uint8_t>(*at_++);
            bits |= static_cast<Bits>(static_cast<Bits>(byte & 0x7Fu) << shift);
            if (byte >= 0x80) continue;
            value = static_cast<T>((bits >> 1) ^ (~(bits & 1) + 1));
            return true;
        }
        return false;
    }
    /// A length and so many bytes; null when it is negative.
    [[nodiscard]] bool take(std::optional<ByteView>& bytes) {
        std::int32_t size = 0;
        if (!take(size)) return false;
        bytes.reset();
        if (size < 0) return true;
        if (size > end_ - at_) return false;
        bytes = ByteView(at_, static_cast<std::size_t>(size));
        at_ += size;
        return true;
    }
    [[nodiscard]] bool skip(std::size_t count) {
        if (count > static_cast<std::size_t>(end_ - at_)) return false;
        at_ += count;
        return true;
    }
    [[nodiscard]] ByteView rest() const { return {at_, end_}; }

private:
    const std::byte* at_;
    const std::byte* end_;
};

/// Zigzag; gives how many bytes it took.
std::size_t put_varint(std::byte* to, std::int64_t value) {
    auto bits = (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63);
    std::size_t bytes = 0;
    for (; bits >= 0x80; bits >>= 7) to[bytes++] = static_cast<std::byte>(bits | 0x80);
    to[bytes++] = static_cast<std::byte>(bits);
    return bytes;
}

[[nodiscard]] std::int64_t wrapping_difference(std::int64_t a, std::int64_t b) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
}

/// The header fields that a rewritten batch does not take over.
struct Changes {
    std::uint16_t attributes;
    std::int64_t base_timestamp;
    std::int64_t max_timestamp;
    std::int32_t count;
};

void write_batch(const BatchHeader& original, const Changes& changes, ByteView payload,
                 std::vector<std::byte>& out) {
    const auto begin = out.size();
    out.resize(begin + BatchHeader::kBytes + payload.size());
    auto* at = out.data() + begin;
    const auto put = [&at](auto value) {
        base::store_be(at, value);
        at += sizeof(value);
    };
    put(original.base_offset);
    put(static_cast<std::int32_t>(BatchHeader::kBytes - BatchHeader::kLengthEnd + payload.size()));
    put(original.partition_leader_epoch);
    put(BatchHeader::kMagic);
    put(std::uint32_t{0});  // the checksum
    put(changes.attributes);
    put(original.last_offset_delta);
    put(changes.base_timestamp);
    put(changes.max_timestamp);
    put(original.producer_id);
    put(original.producer_epoch);
    put(original.base_sequence);
    put(changes.count);
    std::ranges::copy(payload, at);
    const auto batch = ByteView(out).subspan(begin);
    base::store_be(out.data() + begin + BatchHeader::kCrcAt,
                   base::crc32c(batch.subspan(BatchHeader::kCrcFrom)));
}

}  // namespace

RecordScanner::RecordScanner(const BatchHeader& header, UnpackedRecords records)
    : header_(header),
      unpacked_(std::move(records.unpacked)),
      rest_(records.bytes),
      left_(header.count) {}

Result<RecordScanner> RecordScanner::open(const BatchView& batch, DecodeSite& site,
                                          std::size_t limit_bytes) {
    KAAS_TRY_ASSIGN(records, unpack_records(batch, site, limit_bytes));
    return RecordScanner(batch.header, std::move(records));
}

Result<bool> RecordScanner::next(RecordSketch& record) {
    if (left_ == 0) {
        if (rest_.empty()) return false;
        return base::fail(CodecError::kInvalid,
                          fmt::format("{} bytes behind the last record", rest_.size()));
    }
    std::int32_t size = 0;
    Varints all(rest_);
    if (!all.take(size) || size < 0 || static_cast<std::size_t>(size) > all.rest().size()) {
        return base::fail(CodecError::kInvalid,
                          fmt::format("a record of {} bytes, {} are left; {} to come", size,
                                      rest_.size(), left_));
    }
    const auto body = all.rest().first(static_cast<std::size_t>(size));
    Varints in(body);
    std::int64_t time_delta = 0;
    std::int32_t offset_delta = 0;
    std::optional<ByteView> value;
    if (!in.skip(1) || !in.take(time_delta)) {
        return base::fail(CodecError::kInvalid, "not a record: it ends early");
    }
    record.tail = in.rest();
    if (!in.take(offset_delta) || !in.take(record.key) || !in.take(value)) {
        return base::fail(CodecError::kInvalid, "not a record: a length that cannot be");
    }
    record.has_value = value.has_value();
    record.offset = wrapping_sum(header_.base_offset, offset_delta);
    record.timestamp_ms = header_.timestamp_type() == TimestampType::kLogAppendTime
                              ? header_.max_timestamp
                              : wrapping_sum(header_.base_timestamp, time_delta);
    rest_ = all.rest().subspan(body.size());
    --left_;
    return true;
}

BatchRewriter::BatchRewriter(const BatchHeader& original,
                             std::optional<std::int64_t> delete_horizon_ms)
    : original_(original),
      delete_horizon_ms_(delete_horizon_ms),
      base_timestamp_(delete_horizon_ms.value_or(-1)) {}

void BatchRewriter::keep(const RecordSketch& record) {
    if (count_ == 0 && !delete_horizon_ms_) base_timestamp_ = record.timestamp_ms;
    std::byte time[kVarintBytesMax];
    const auto time_bytes =
        put_varint(time, wrapping_difference(record.timestamp_ms, base_timestamp_));
    const auto body_bytes = 1 + time_bytes + record.tail.size();
    std::byte size[kVarintBytesMax];
    const auto size_bytes = put_varint(size, static_cast<std::int64_t>(body_bytes));
    records_.insert(records_.end(), size, size + size_bytes);
    records_.push_back(std::byte{0});  // attributes: none are in use
    records_.insert(records_.end(), time, time + time_bytes);
    records_.insert(records_.end(), record.tail.begin(), record.tail.end());
    max_timestamp_ = std::max(max_timestamp_, record.timestamp_ms);
    ++count_;
}

void BatchRewriter::write(std::vector<std::byte>& out) const {
    KAAS_ASSERT(count_ > 0);
    auto attributes = static_cast<std::uint16_t>(original_.attributes & ~kDeleteHorizonFlag);
    if (delete_horizon_ms_) attributes |= kDeleteHorizonFlag;
    const bool append_time = original_.timestamp_type() == TimestampType::kLogAppendTime;
    const Changes changes{.attributes = attributes,
                          .base_timestamp = base_timestamp_,
                          .max_timestamp = append_time ? original_.max_timestamp : max_timestamp_,
                          .count = count_};
    if (original_.compression() == Compression::kNone) {
        return write_batch(original_, changes, records_, out);
    }
    write_batch(original_, changes, compress(original_.compression(), records_), out);
}

void BatchRewriter::write_empty(const BatchHeader& original, std::vector<std::byte>& out) {
    const auto attributes =
        static_cast<std::uint16_t>(original.attributes & ~(kCodecBits | kDeleteHorizonFlag));
    write_batch(original,
                {.attributes = attributes,
                 .base_timestamp = -1,
                 .max_timestamp = original.max_timestamp,
                 .count = 0},
                {}, out);
}

}  // namespace kaas::wire
