#include "wire/reader.h"

#include "base/bytes.h"
#include "base/result.h"
#include "wire/error.h"
#include "wire/types.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>

namespace kaas::wire {
namespace {

// Apache: MessageUtil, the generated classes of 4.4 refuse more.
constexpr std::uint32_t kArrayElementsMax = 1'000'000;
constexpr std::uint32_t kTagsMax = 10'000;

// What one decode may allocate for arrays. Real requests need up to about five times their size
// (many small structs); the cap is far above a request that names a million partitions.
constexpr std::size_t kMemoryBase = std::size_t{64} << 10;
constexpr std::size_t kMemoryPerByte = 16;
constexpr std::size_t kMemoryMax = std::size_t{128} << 20;

}  // namespace

Reader::Reader(ByteView bytes)
    : begin_(bytes.data()),
      at_(bytes.data()),
      end_(bytes.data() + bytes.size()),
      memory_left_(std::min(kMemoryMax, kMemoryBase + kMemoryPerByte * bytes.size())) {}

void Reader::fail(CodecError code, const char* what) {
    if (failed_) return;
    failed_ = true;
    code_ = code;
    what_ = what;
    failed_at_ = position();
    end_ = at_;
}

void Reader::truncated() { fail(CodecError::kTruncated, "the bytes end inside a field"); }

Result<void> Reader::status() const {
    if (!failed_) return {};
    return base::fail(code_, fmt::format("{} at byte {}", what_, failed_at_));
}

Uuid Reader::uuid() {
    Uuid id;
    ByteView view = raw(id.bytes.size());
    if (!view.empty()) std::memcpy(id.bytes.data(), view.data(), view.size());
    return id;
}

std::uint32_t Reader::unsigned_varint() {
    std::uint32_t value = 0;
    for (int shift = 0; shift <= 28; shift += 7) {
        auto byte = static_cast<std::uint8_t>(int8());
        value |= static_cast<std::uint32_t>(byte & 0x7F) << shift;
        if (byte < 0x80) return value;
    }
    fail(CodecError::kInvalid, "a varint of more than five bytes");
    return 0;
}

std::int32_t Reader::varint() {
    std::uint32_t raw = unsigned_varint();
    return static_cast<std::int32_t>((raw >> 1) ^ (~(raw & 1) + 1));
}

std::int64_t Reader::varlong() {
    std::uint64_t raw = 0;
    for (int shift = 0; shift <= 63; shift += 7) {
        auto byte = static_cast<std::uint8_t>(int8());
        raw |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
        if (byte < 0x80) return static_cast<std::int64_t>((raw >> 1) ^ (~(raw & 1) + 1));
    }
    fail(CodecError::kInvalid, "a varlong of more than ten bytes");
    return 0;
}

ByteView Reader::raw(std::size_t count) {
    if (count > remaining()) {
        truncated();
        return {};
    }
    ByteView view{at_, count};
    at_ += count;
    return view;
}

template <class Length>
std::optional<std::size_t> Reader::length(bool flexible) {
    std::int64_t value =
        flexible ? std::int64_t{unsigned_varint()} - 1 : std::int64_t{fixed<Length>()};
    if (failed_ || value < 0) return std::nullopt;
    auto size = static_cast<std::size_t>(value);
    if (size > static_cast<std::size_t>(std::numeric_limits<Length>::max())) {
        fail(CodecError::kInvalid, "a length above the type's limit");
        return std::nullopt;
    }
    if (size > remaining()) {
        fail(CodecError::kTruncated, "a length points past the end");
        return std::nullopt;
    }
    return size;
}

std::optional<String> Reader::nullable_string(bool flexible, bool may_be_null) {
    // Apache limits compact strings to what the short form can say.
    auto size = length<std::int16_t>(flexible);
    if (size) return String::borrow(base::as_text(raw(*size)));
    if (!may_be_null) fail(CodecError::kInvalid, "null for a string that must not be null");
    return std::nullopt;
}

String Reader::string(bool flexible) { return nullable_string(flexible, false).value_or(String()); }

std::optional<Bytes> Reader::nullable_bytes(bool flexible, bool may_be_null) {
    auto size = length<std::int32_t>(flexible);
    if (size) return Bytes::borrow(raw(*size));
    if (!may_be_null) fail(CodecError::kInvalid, "null for bytes that must not be null");
    return std::nullopt;
}

Bytes Reader::bytes(bool flexible) { return nullable_bytes(flexible, false).value_or(Bytes()); }

Records Reader::records(bool flexible, bool may_be_null) {
    auto size = length<std::int32_t>(flexible);
    if (!size) {
        if (!may_be_null) fail(CodecError::kInvalid, "null for records that must not be null");
        return {};
    }
    ByteView view = raw(*size);
    // The constructor was given mutable memory.
    if (writable_) return Records::in_frame({const_cast<std::byte*>(view.data()), view.size()});
    return Records::bytes(view);
}

std::optional<std::uint32_t> Reader::array_length(bool flexible, std::size_t wire_bytes_min,
                                                  std::size_t memory_bytes) {
    std::int64_t value = flexible ? std::int64_t{unsigned_varint()} - 1 : std::int64_t{int32()};
    if (failed_ || value < 0) return std::nullopt;
    auto count = static_cast<std::uint32_t>(value);
    if (count > kArrayElementsMax) {
        fail(CodecError::kTooLarge, "an array of more than a million elements");
        return std::nullopt;
    }
    if (count * wire_bytes_min > remaining()) {
        fail(CodecError::kTruncated, "an array of more elements than bytes are left for");
        return std::nullopt;
    }
    if (count * memory_bytes > memory_left_) {
        fail(CodecError::kTooLarge, "arrays that need far more memory than the frame");
        return std::nullopt;
    }
    memory_left_ -= count * memory_bytes;
    return count;
}

std::uint32_t Reader::array_length_not_null(bool flexible, std::size_t wire_bytes_min,
                                            std::size_t memory_bytes) {
    auto count = array_length(flexible, wire_bytes_min, memory_bytes);
    if (!count) fail(CodecError::kInvalid, "null for an array that must not be null");
    return count.value_or(0);
}

std::uint32_t Reader::tag_count() {
    std::uint32_t count = unsigned_varint();
    if (count > kTagsMax) {
        fail(CodecError::kTooLarge, "more than 10000 tagged fields");
        return 0;
    }
    if (count > remaining()) {
        fail(CodecError::kTruncated, "more tagged fields than bytes are left for");
        return 0;
    }
    return count;
}

void Reader::unknown_tag(UnknownTags& into, std::uint32_t tag, std::uint32_t size) {
    if (size > remaining()) {
        truncated();
        return;
    }
    if (sizeof(UnknownTag) > memory_left_) {
        fail(CodecError::kTooLarge, "tagged fields that need far more memory than the frame");
        return;
    }
    memory_left_ -= sizeof(UnknownTag);
    into.add(tag, Bytes::borrow(raw(size)));
}

void Reader::unknown_tags(UnknownTags& into) {
    for (std::uint32_t left = tag_count(); left > 0 && ok(); --left) {
        std::uint32_t tag = unsigned_varint();
        std::uint32_t size = unsigned_varint();
        unknown_tag(into, tag, size);
    }
}

}  // namespace kaas::wire
