#include "wire/writer.h"

#include "base/assert.h"
#include "base/bytes.h"
#include "base/result.h"
#include "wire/error.h"
#include "wire/types.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace kaas::wire {

namespace {

std::size_t with_splices(std::size_t size, std::span<const Splice> splices) {
    for (const auto& splice : splices) size += splice.length;
    return size;
}

}  // namespace

std::size_t Output::wire_size() const { return with_splices(size_, splices_); }

std::size_t Writer::wire_size() const { return with_splices(size_, splices_); }

Writer::Writer(std::size_t capacity)
    : memory_(std::make_unique_for_overwrite<std::byte[]>(capacity)), capacity_(capacity) {}

Result<void> Writer::status() const {
    if (ok()) return {};
    return base::fail(code_, std::string(what_));
}

void Writer::fail(CodecError code, const char* what) {
    if (!ok()) return;
    code_ = code;
    what_ = what;
}

Output Writer::take() {
    Output output;
    output.memory_ = std::move(memory_);
    output.size_ = std::exchange(size_, 0);
    output.splices_ = std::exchange(splices_, {});
    capacity_ = 0;
    return output;
}

void Writer::grow(std::size_t by) {
    std::size_t capacity = std::max(size_ + by, capacity_ * 2);
    auto memory = std::make_unique_for_overwrite<std::byte[]>(capacity);
    if (size_ > 0) std::memcpy(memory.get(), memory_.get(), size_);
    memory_ = std::move(memory);
    capacity_ = capacity;
}

void Writer::unsigned_varint(std::uint32_t value) {
    for (; value >= 0x80; value >>= 7) int8(static_cast<std::int8_t>(value | 0x80));
    int8(static_cast<std::int8_t>(value));
}

void Writer::varint(std::int32_t value) {
    unsigned_varint((static_cast<std::uint32_t>(value) << 1) ^
                    static_cast<std::uint32_t>(value >> 31));
}

void Writer::varlong(std::int64_t value) {
    auto raw = (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63);
    for (; raw >= 0x80; raw >>= 7) int8(static_cast<std::int8_t>(raw | 0x80));
    int8(static_cast<std::int8_t>(raw));
}

void Writer::raw(ByteView bytes) {
    if (bytes.empty()) return;
    if (capacity_ - size_ < bytes.size()) grow(bytes.size());
    std::memcpy(memory_.get() + size_, bytes.data(), bytes.size());
    size_ += bytes.size();
}

void Writer::string(std::string_view text, bool flexible) {
    if (text.size() > static_cast<std::size_t>(std::numeric_limits<std::int16_t>::max())) {
        fail(CodecError::kTooLarge, "a string of more than 32767 bytes");
        return;
    }
    if (flexible) {
        unsigned_varint(static_cast<std::uint32_t>(text.size()) + 1);
    } else {
        int16(static_cast<std::int16_t>(text.size()));
    }
    raw(base::as_bytes(text));
}

void Writer::null_string(bool flexible) { flexible ? unsigned_varint(0) : int16(-1); }

void Writer::nullable_string(const std::optional<String>& text, bool flexible) {
    text ? string(*text, flexible) : null_string(flexible);
}

void Writer::bytes(ByteView bytes, bool flexible) {
    array_length(bytes.size(), flexible);
    raw(bytes);
}

void Writer::nullable_bytes(const std::optional<Bytes>& value, bool flexible) {
    value ? bytes(*value, flexible) : null_array(flexible);
}

void Writer::records(const Records& records, bool flexible) {
    if (records.is_null()) return null_array(flexible);
    array_length(records.size(), flexible);
    if (!records.is_external()) return raw(records.view());
    if (records.size() == 0) return;
    splices_.push_back({.position = size_,
                        .length = static_cast<std::uint32_t>(records.size()),
                        .cookie = records.cookie()});
}

void Writer::array_length(std::size_t count, bool flexible) {
    if (count > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max())) {
        fail(CodecError::kTooLarge, "a length of more than 31 bits");
        return;
    }
    if (flexible) {
        unsigned_varint(static_cast<std::uint32_t>(count) + 1);
    } else {
        int32(static_cast<std::int32_t>(count));
    }
}

void Writer::null_array(bool flexible) { flexible ? unsigned_varint(0) : int32(-1); }

void Writer::patch_int32(std::size_t position, std::int32_t value) {
    KAAS_ASSERT(position + sizeof(value) <= size_);
    base::store_be(memory_.get() + position, value);
}

std::size_t Writer::begin_tag(std::uint32_t tag) {
    unsigned_varint(tag);
    return size_;
}

void Writer::end_tag(std::size_t begun) {
    // The size was not known before the content; tagged fields are small, so the move is cheap.
    KAAS_ASSERT(splices_.empty() || splices_.back().position <= begun);
    std::size_t content = size_ - begun;
    unsigned_varint(static_cast<std::uint32_t>(content));
    auto* memory = memory_.get();
    std::rotate(memory + begun, memory + begun + content, memory + size_);
}

void Writer::tag_count(std::size_t known, const UnknownTags& unknown) {
    unsigned_varint(static_cast<std::uint32_t>(known + unknown.size()));
}

void Writer::unknown_tags(const UnknownTags& unknown, std::uint32_t first_unknown) {
    std::uint64_t lowest = first_unknown;
    for (const auto& field : unknown.all()) {
        if (field.tag < lowest) {
            fail(CodecError::kInvalid, "unknown tagged fields out of order");
            return;
        }
        lowest = std::uint64_t{field.tag} + 1;
        unsigned_varint(field.tag);
        unsigned_varint(static_cast<std::uint32_t>(field.data.size()));
        raw(field.data);
    }
}

}  // namespace kaas::wire
