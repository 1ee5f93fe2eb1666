#include "wire/records.h"

#include "base/assert.h"
#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/metrics.h"
#include "base/result.h"
#include "wire/compression.h"
#include "wire/error.h"
#include "wire/reader.h"
#include "wire/record_batch.h"
#include "wire/types.h"
#include "wire/writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kaas::wire {
namespace {

bool same(const std::optional<ByteView>& a, const std::optional<ByteView>& b) {
    return a.has_value() == b.has_value() && (!a || std::ranges::equal(*a, *b));
}

/// Any negative length is null, as Apache's `Utils.readBytes` has it.
std::optional<ByteView> read_nullable(Reader& in) {
    const std::int32_t size = in.varint();
    if (size < 0) return std::nullopt;
    return in.raw(static_cast<std::size_t>(size));
}

void read_headers(Reader& in, std::vector<RecordHeader>& headers) {
    headers.clear();
    const std::int32_t count = in.varint();
    // A header has at least two bytes.
    if (count < 0 || static_cast<std::size_t>(count) > in.remaining() / 2) {
        return in.fail(CodecError::kInvalid, "a number of record headers that cannot be");
    }
    for (std::int32_t i = 0; i < count && in.ok(); ++i) {
        const std::int32_t key_size = in.varint();
        if (key_size < 0) return in.fail(CodecError::kInvalid, "a record header without a key");
        auto key = base::as_text(in.raw(static_cast<std::size_t>(key_size)));
        headers.push_back({.key = key, .value = read_nullable(in)});
    }
}

void write_nullable(Writer& out, std::optional<ByteView> bytes) {
    if (!bytes) return out.varint(-1);
    out.varint(static_cast<std::int32_t>(bytes->size()));
    out.raw(*bytes);
}

}  // namespace

DecodeSite::DecodeSite(base::metrics::Registry& registry, std::string_view name)
    : decoded_(registry.counter("kaas_codec_record_decode_total",
                                "Records that were decoded, by the place that needed it.",
                                {{"site", std::string(name)}})) {}

bool operator==(const RecordHeader& a, const RecordHeader& b) {
    return a.key == b.key && same(a.value, b.value);
}

bool operator==(const Record& a, const Record& b) {
    return a.offset == b.offset && a.timestamp_ms == b.timestamp_ms && a.sequence == b.sequence &&
           same(a.key, b.key) && same(a.value, b.value) && a.headers == b.headers;
}

Result<UnpackedRecords> unpack_records(const BatchView& batch, DecodeSite& site,
                                       std::size_t limit_bytes) {
    const BatchHeader& header = batch.header;
    if (header.count < 0) {
        return base::fail(CodecError::kInvalid, fmt::format("a record count of {}", header.count));
    }
    site.count(static_cast<std::uint64_t>(std::max(header.count, 1)));
    // What compaction emptied has no records and nothing to unpack.
    if (header.count == 0) return UnpackedRecords{};
    if (header.compression() == Compression::kNone)
        return UnpackedRecords{.bytes = batch.payload()};
    KAAS_TRY_ASSIGN(unpacked, decompress(header.compression(), batch.payload(), limit_bytes));
    const ByteView bytes(unpacked);
    return UnpackedRecords{.unpacked = std::move(unpacked), .bytes = bytes};
}

RecordReader::RecordReader(const BatchHeader& header, UnpackedRecords records,
                           std::int32_t record_bytes_max)
    : header_(header),
      unpacked_(std::move(records.unpacked)),
      rest_(records.bytes),
      left_(header.count),
      record_bytes_max_(record_bytes_max) {}

Result<RecordReader> RecordReader::open(const BatchView& batch, DecodeSite& site,
                                        UnpackLimits limits) {
    KAAS_TRY_ASSIGN(records, unpack_records(batch, site, limits.batch_bytes));
    const bool packed = batch.header.compression() != Compression::kNone;
    return RecordReader(batch.header, std::move(records),
                        packed ? limits.record_bytes : UnpackLimits{}.record_bytes);
}

Result<bool> RecordReader::next(Record& record) {
    if (left_ == 0) {
        if (rest_.empty()) return false;
        return base::fail(CodecError::kInvalid,
                          fmt::format("{} bytes behind the last record", rest_.size()));
    }
    Reader all(rest_);
    const std::int32_t size = all.varint();
    Reader in(all.raw(static_cast<std::size_t>(std::max(size, 0))));
    if (!all.ok() || size < 0) {
        return base::fail(CodecError::kInvalid,
                          fmt::format("a record of {} bytes, {} are left; {} to come", size,
                                      rest_.size(), left_));
    }
    if (size > record_bytes_max_) {
        return base::fail(
            CodecError::kInvalid,
            fmt::format("a record of {} bytes unpacked, {} at most", size, record_bytes_max_));
    }
    in.int8();  // attributes: none are in use
    record.timestamp_ms = wrapping_sum(header_.base_timestamp, in.varlong());
    if (header_.timestamp_type() == TimestampType::kLogAppendTime)
        record.timestamp_ms = header_.max_timestamp;
    const std::int32_t delta = in.varint();
    record.offset = wrapping_sum(header_.base_offset, delta);
    record.sequence = header_.base_sequence < 0 ? -1 : sequence_after(header_.base_sequence, delta);
    record.key = read_nullable(in);
    record.value = read_nullable(in);
    read_headers(in, record.headers);
    if (auto status = in.status(); !status) {
        return base::fail(CodecError::kInvalid,
                          fmt::format("not a record: {}", status.error().context));
    }
    if (in.remaining() > 0) {
        return base::fail(CodecError::kInvalid,
                          fmt::format("{} bytes too many in a record", in.remaining()));
    }
    rest_ = rest_.subspan(all.position());
    --left_;
    return true;
}

void BatchBuilder::add(std::int64_t timestamp_ms, std::optional<ByteView> key,
                       std::optional<ByteView> value, std::span<const RecordHeader> headers) {
    add_at(options_.base_offset + last_offset_delta_ + 1, timestamp_ms, key, value, headers);
}

void BatchBuilder::add_at(std::int64_t offset, std::int64_t timestamp_ms,
                          std::optional<ByteView> key, std::optional<ByteView> value,
                          std::span<const RecordHeader> headers) {
    const std::int64_t delta = offset - options_.base_offset;
    KAAS_ASSERT(delta > last_offset_delta_ && delta <= std::numeric_limits<std::int32_t>::max());
    if (count_ == 0) base_timestamp_ = timestamp_ms;
    Writer body;
    body.int8(0);
    body.varlong(timestamp_ms - base_timestamp_);
    body.varint(static_cast<std::int32_t>(delta));
    write_nullable(body, key);
    write_nullable(body, value);
    body.varint(static_cast<std::int32_t>(headers.size()));
    for (const auto& header : headers) {
        write_nullable(body, base::as_bytes(header.key));
        write_nullable(body, header.value);
    }
    Writer prefix(8);
    prefix.varint(static_cast<std::int32_t>(body.size()));
    records_.insert(records_.end(), prefix.view().begin(), prefix.view().end());
    records_.insert(records_.end(), body.view().begin(), body.view().end());
    max_timestamp_ = std::max(max_timestamp_, timestamp_ms);
    last_offset_delta_ = static_cast<std::int32_t>(delta);
    ++count_;
}

std::vector<std::byte> BatchBuilder::build() const {
    KAAS_ASSERT(count_ > 0);
    const bool append_time = options_.timestamp_type == TimestampType::kLogAppendTime;
    const std::vector<std::byte> payload = compress(options_.compression, records_);
    int attributes = static_cast<int>(options_.compression);
    if (append_time) attributes |= 0x08;
    if (options_.transactional) attributes |= 0x10;
    if (options_.control) attributes |= 0x20;
    Writer out(BatchHeader::kBytes + payload.size());
    out.int64(options_.base_offset);
    out.int32(
        static_cast<std::int32_t>(BatchHeader::kBytes - BatchHeader::kLengthEnd + payload.size()));
    out.int32(options_.partition_leader_epoch);
    out.int8(BatchHeader::kMagic);
    out.uint32(0);
    out.uint16(static_cast<std::uint16_t>(attributes));
    out.int32(last_offset_delta_);
    out.int64(base_timestamp_);
    out.int64(append_time ? options_.log_append_time_ms : max_timestamp_);
    out.int64(options_.producer_id);
    out.int16(options_.producer_epoch);
    out.int32(options_.base_sequence);
    out.int32(count_);
    out.raw(payload);
    std::vector<std::byte> batch(out.view().begin(), out.view().end());
    base::store_be(batch.data() + BatchHeader::kCrcAt,
                   base::crc32c(ByteView(batch).subspan(BatchHeader::kCrcFrom)));
    return batch;
}

}  // namespace kaas::wire
