#pragma once

#include <endian.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace kaas::bench {

using TopicId = std::array<char, 16>;

/// Appends Kafka's primitive types to a string. Only what the bench sends; compact forms
/// throughout.
class Writer {
public:
    void i8(int8_t value) { out_.push_back(static_cast<char>(value)); }
    void i16(int16_t value) { fixed(htobe16(static_cast<uint16_t>(value))); }
    void i32(int32_t value) { fixed(htobe32(static_cast<uint32_t>(value))); }
    void i64(int64_t value) { fixed(htobe64(static_cast<uint64_t>(value))); }

    void uvarint(uint64_t value) {
        for (; value >= 0x80; value >>= 7) out_.push_back(static_cast<char>(value | 0x80));
        out_.push_back(static_cast<char>(value));
    }
    /// Zigzag, as inside records.
    void varint(int64_t value) {
        uvarint((static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63));
    }

    void raw(std::string_view bytes) { out_.append(bytes); }
    void id(const TopicId& id) { out_.append(id.data(), id.size()); }
    void compact_string(std::string_view text) {
        uvarint(text.size() + 1);
        raw(text);
    }
    /// Strings of request headers keep the two-byte length in every version.
    void short_string(std::string_view text) {
        i16(static_cast<int16_t>(text.size()));
        raw(text);
    }
    void null() { uvarint(0); }
    void array(size_t count) { uvarint(count + 1); }
    void no_tags() { uvarint(0); }

    void patch_i32(size_t at, int32_t value) {
        const uint32_t big = htobe32(static_cast<uint32_t>(value));
        std::memcpy(out_.data() + at, &big, sizeof big);
    }

    [[nodiscard]] size_t size() const { return out_.size(); }
    [[nodiscard]] const std::string& bytes() const { return out_; }
    [[nodiscard]] std::string take() { return std::move(out_); }

private:
    template <typename T>
    void fixed(T big_endian) {
        out_.append(reinterpret_cast<const char*>(&big_endian), sizeof big_endian);
    }

    std::string out_;
};

/// Reads Kafka's primitive types from a view. Running past the end makes every later read zero and
/// ok() false, so that a caller checks once.
class Reader {
public:
    explicit Reader(std::string_view bytes) : bytes_(bytes) {}

    [[nodiscard]] bool ok() const { return ok_; }
    [[nodiscard]] size_t position() const { return at_; }
    [[nodiscard]] size_t left() const { return bytes_.size() - at_; }

    int8_t i8() { return static_cast<int8_t>(fixed<uint8_t>()); }
    int16_t i16() { return static_cast<int16_t>(be16toh(fixed<uint16_t>())); }
    int32_t i32() { return static_cast<int32_t>(be32toh(fixed<uint32_t>())); }
    int64_t i64() { return static_cast<int64_t>(be64toh(fixed<uint64_t>())); }

    uint64_t uvarint() {
        uint64_t value = 0;
        for (int shift = 0; shift < 64; shift += 7) {
            const auto byte = fixed<uint8_t>();
            value |= static_cast<uint64_t>(byte & 0x7f) << shift;
            if (byte < 0x80) return value;
        }
        ok_ = false;
        return 0;
    }

    std::string_view raw(size_t count) {
        if (count > left()) {
            ok_ = false;
            at_ = bytes_.size();
            return {};
        }
        const auto found = bytes_.substr(at_, count);
        at_ += count;
        return found;
    }
    TopicId id() {
        TopicId id{};
        const auto bytes = raw(id.size());
        if (ok_) std::memcpy(id.data(), bytes.data(), id.size());
        return id;
    }
    /// A null reads as empty.
    std::string_view compact_string() {
        const auto length = uvarint();
        return length == 0 ? std::string_view{} : raw(length - 1);
    }
    std::string_view short_string() {
        const auto length = i16();
        return length <= 0 ? std::string_view{} : raw(static_cast<size_t>(length));
    }
    /// A null reads as empty. A count larger than the bytes left cannot be true.
    size_t array() {
        const auto length = uvarint();
        if (length > left() + 1) ok_ = false;
        return ok_ && length > 0 ? length - 1 : 0;
    }
    void skip(size_t count) { raw(count); }
    void skip_tags() {
        for (auto count = uvarint(); count > 0 && ok_; --count) {
            uvarint();
            skip(uvarint());
        }
    }

private:
    template <typename T>
    T fixed() {
        T value = 0;
        const auto bytes = raw(sizeof value);
        if (!bytes.empty()) std::memcpy(&value, bytes.data(), sizeof value);
        return value;
    }

    std::string_view bytes_;
    size_t at_ = 0;
    bool ok_ = true;
};

}  // namespace kaas::bench
