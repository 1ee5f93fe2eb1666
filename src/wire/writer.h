#pragma once

#include "base/bytes.h"
#include "wire/error.h"
#include "wire/types.h"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace kaas::wire {

/// A region that is not in the output's bytes but belongs between them.
struct Splice {
    std::size_t position = 0;  ///< how many of the output's bytes stand before it
    std::uint32_t length = 0;
    std::uint64_t cookie = 0;  ///< the `Records::external` it came from

    friend bool operator==(const Splice&, const Splice&) = default;
};

/// Bytes that a writer made. Move only.
class Output {
public:
    Output() = default;

    [[nodiscard]] ByteView bytes() const { return {memory_.get(), size_}; }
    [[nodiscard]] MutableBytes bytes() { return {memory_.get(), size_}; }
    /// In order of position.
    [[nodiscard]] std::span<const Splice> splices() const { return splices_; }
    /// All that goes on the wire: bytes and splices.
    [[nodiscard]] std::size_t wire_size() const;

private:
    friend class Writer;
    std::unique_ptr<std::byte[]> memory_;
    std::size_t size_ = 0;
    std::vector<Splice> splices_;
};

/// Writes Kafka's primitives into a buffer that it owns and grows.
///
/// The first error (a field that the version cannot carry, a string that is too long) sticks;
/// `status()` tells it once, at the end, and the output must not be sent then.
class Writer {
public:
    explicit Writer(std::size_t capacity = 256);

    [[nodiscard]] bool ok() const { return what_ == nullptr; }
    [[nodiscard]] Result<void> status() const;
    /// `what` is a literal: the field's name, or the fault.
    void fail(CodecError code, const char* what);

    [[nodiscard]] std::size_t size() const { return size_; }
    [[nodiscard]] ByteView view() const { return {memory_.get(), size_}; }
    /// All that goes on the wire so far: bytes and splices.
    [[nodiscard]] std::size_t wire_size() const;
    /// Hands the buffer over and starts anew.
    [[nodiscard]] Output take();

    void int8(std::int8_t value) { fixed(value); }
    void int16(std::int16_t value) { fixed(value); }
    void uint16(std::uint16_t value) { fixed(value); }
    void int32(std::int32_t value) { fixed(value); }
    void uint32(std::uint32_t value) { fixed(value); }
    void int64(std::int64_t value) { fixed(value); }
    void boolean(bool value) { fixed(static_cast<std::int8_t>(value ? 1 : 0)); }
    void float64(double value) { fixed(std::bit_cast<std::uint64_t>(value)); }
    void uuid(const Uuid& id) { raw(std::as_bytes(std::span(id.bytes))); }

    void unsigned_varint(std::uint32_t value);
    void varint(std::int32_t value);
    void varlong(std::int64_t value);
    void raw(ByteView bytes);

    void string(std::string_view text, bool flexible);
    void null_string(bool flexible);
    void nullable_string(const std::optional<String>& text, bool flexible);
    void bytes(ByteView bytes, bool flexible);
    void nullable_bytes(const std::optional<Bytes>& bytes, bool flexible);
    void records(const Records& records, bool flexible);
    /// Null is -1, or 0 in the compact form.
    void array_length(std::size_t count, bool flexible);
    void null_array(bool flexible);

    /// Overwrites four bytes that were written before (a frame's length).
    void patch_int32(std::size_t position, std::int32_t value);

    /// Between these two, a tagged field's content is written; its size is put before it.
    [[nodiscard]] std::size_t begin_tag(std::uint32_t tag);
    void end_tag(std::size_t begun);
    /// The count of tagged fields; what is known comes after it, then `unknown_tags`.
    void tag_count(std::size_t known, const UnknownTags& unknown);
    /// Fails unless tags rise and lie above those that the struct knows.
    void unknown_tags(const UnknownTags& unknown, std::uint32_t first_unknown);

private:
    template <class T>
    void fixed(T value) {
        if (capacity_ - size_ < sizeof(T)) grow(sizeof(T));
        base::store_be(memory_.get() + size_, value);
        size_ += sizeof(T);
    }
    void grow(std::size_t by);

    std::unique_ptr<std::byte[]> memory_;
    std::size_t size_ = 0;
    std::size_t capacity_;
    std::vector<Splice> splices_;
    const char* what_ = nullptr;
    CodecError code_ = CodecError::kInvalid;
};

}  // namespace kaas::wire
