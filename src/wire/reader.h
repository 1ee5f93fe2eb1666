#pragma once

#include "base/bytes.h"
#include "wire/error.h"
#include "wire/types.h"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace kaas::wire {

/// Reads Kafka's primitives off a frame. Strings, bytes and records that it returns borrow from the
/// frame.
///
/// The first error sticks: from then on nothing is left, every read gives zero or empty, and
/// `status()` tells what was wrong and where. So decoding code is straight lines, and the caller
/// looks once, at the end. Nothing here throws on bad input, and nothing is allocated before its
/// length was checked against the bytes that are left.
class Reader {
public:
    /// Records in the frame may be patched in place.
    explicit Reader(MutableBytes frame) : Reader(ByteView(frame)) { writable_ = true; }
    explicit Reader(ByteView bytes);

    [[nodiscard]] bool ok() const { return !failed_; }
    [[nodiscard]] Result<void> status() const;
    [[nodiscard]] std::size_t remaining() const { return static_cast<std::size_t>(end_ - at_); }
    [[nodiscard]] std::size_t position() const { return static_cast<std::size_t>(at_ - begin_); }

    /// Marks the input as bad; later errors do not replace the first. `what` is a literal.
    void fail(CodecError code, const char* what);

    std::int8_t int8() { return fixed<std::int8_t>(); }
    std::int16_t int16() { return fixed<std::int16_t>(); }
    std::uint16_t uint16() { return fixed<std::uint16_t>(); }
    std::int32_t int32() { return fixed<std::int32_t>(); }
    std::uint32_t uint32() { return fixed<std::uint32_t>(); }
    std::int64_t int64() { return fixed<std::int64_t>(); }
    bool boolean() { return int8() != 0; }
    double float64() { return std::bit_cast<double>(fixed<std::uint64_t>()); }
    Uuid uuid();

    /// LEB128 of 32 bits, at most five bytes; like Apache, the fifth may carry bits that are
    /// dropped.
    std::uint32_t unsigned_varint();
    /// Zigzag; at most five and ten bytes (record fields).
    std::int32_t varint();
    std::int64_t varlong();

    /// A view of the next `count` bytes.
    ByteView raw(std::size_t count);

    // `flexible` chooses the compact form (KIP-482): an unsigned varint of length + 1, 0 for null.
    String string(bool flexible);
    std::optional<String> nullable_string(bool flexible, bool may_be_null = true);
    Bytes bytes(bool flexible);
    std::optional<Bytes> nullable_bytes(bool flexible, bool may_be_null = true);
    Records records(bool flexible, bool may_be_null);

    /// The number of elements that follow, or nothing for null. Fails unless so many elements of at
    /// least `wire_bytes_min` each can be left, and `memory_bytes` for each fit into the decode's
    /// budget.
    std::optional<std::uint32_t> array_length(bool flexible, std::size_t wire_bytes_min,
                                              std::size_t memory_bytes);
    /// Refuses null where a version has none.
    std::uint32_t array_length_not_null(bool flexible, std::size_t wire_bytes_min,
                                        std::size_t memory_bytes);

    /// The number of tagged fields of a struct (KIP-482).
    std::uint32_t tag_count();
    /// One tagged field whose tag and size were read, kept as it is.
    void unknown_tag(UnknownTags& into, std::uint32_t tag, std::uint32_t size);
    /// All tagged fields of a struct that has none of its own.
    void unknown_tags(UnknownTags& into);

private:
    template <class T>
    T fixed() {
        if (remaining() < sizeof(T)) {
            truncated();
            return T{};
        }
        T value = base::load_be<T>(at_);
        at_ += sizeof(T);
        return value;
    }
    void truncated();
    /// Length of a string, bytes or records field, checked against what is left; nothing for null.
    template <class Length>
    std::optional<std::size_t> length(bool flexible);

    const std::byte* begin_;
    const std::byte* at_;
    const std::byte* end_;
    std::size_t memory_left_;
    const char* what_ = nullptr;
    std::size_t failed_at_ = 0;
    CodecError code_ = CodecError::kInvalid;
    bool failed_ = false;
    bool writable_ = false;
};

}  // namespace kaas::wire
