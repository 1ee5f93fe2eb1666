#pragma once

#include "base/bytes.h"
#include "base/uuid.h"

#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kaas::wire {

using base::ByteView;
using base::MutableBytes;
using base::Uuid;

namespace detail {

/// Memory that is borrowed or owned; 16 bytes. A copy of borrowed memory borrows too, a copy of
/// owned memory owns its own.
class Blob {
public:
    Blob() = default;
    Blob(const Blob& other)
        : data_(other.owned_ ? clone(other.data_, other.size_) : other.data_),
          size_(other.size_),
          owned_(other.owned_) {}
    Blob(Blob&& other) noexcept
        : data_(std::exchange(other.data_, nullptr)),
          size_(std::exchange(other.size_, 0)),
          owned_(std::exchange(other.owned_, false)) {}
    Blob& operator=(Blob other) noexcept {
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
        std::swap(owned_, other.owned_);
        return *this;
    }
    ~Blob() {
        if (owned_) delete[] data_;
    }

    [[nodiscard]] static Blob borrow(const std::byte* data, std::size_t size);
    [[nodiscard]] static Blob copy(const std::byte* data, std::size_t size);

    [[nodiscard]] const std::byte* data() const { return data_; }
    [[nodiscard]] std::size_t size() const { return size_; }
    [[nodiscard]] bool owned() const { return owned_; }

private:
    static const std::byte* clone(const std::byte* data, std::size_t size);

    const std::byte* data_ = nullptr;
    std::uint32_t size_ = 0;
    bool owned_ = false;
};

}  // namespace detail

/// Text of a message. In a decoded message it borrows from the frame; in one that a handler builds,
/// literals and what `borrow` is given are borrowed, all else is copied in. So a response may
/// outlive everything it was made from, except what was borrowed by name. Not validated as UTF-8:
/// what a client sent goes back to it byte for byte.
class String {
public:
    String() = default;
    // NOLINTBEGIN(google-explicit-constructor): text of any kind is meant to become, and be, a
    // String
    template <std::size_t N>
    String(const char (&literal)[N]) : String(borrow({literal, N - 1})) {}
    template <std::size_t N>
    String(char (&buffer)[N]) = delete;  // not a literal: would dangle
    String(std::string_view text);
    String(const std::string& text) : String(std::string_view(text)) {}
    operator std::string_view() const { return view(); }
    // NOLINTEND(google-explicit-constructor)

    /// The caller keeps `text` alive for as long as this string and its copies are used.
    [[nodiscard]] static String borrow(std::string_view text);

    [[nodiscard]] std::string_view view() const {
        return base::as_text({blob_.data(), blob_.size()});
    }
    [[nodiscard]] std::string str() const { return std::string(view()); }
    [[nodiscard]] std::size_t size() const { return blob_.size(); }
    [[nodiscard]] bool empty() const { return blob_.size() == 0; }
    [[nodiscard]] bool owned() const { return blob_.owned(); }

    friend bool operator==(const String& a, const String& b) { return a.view() == b.view(); }
    template <class Text>
        requires(std::convertible_to<const Text&, std::string_view> && !std::same_as<Text, String>)
    friend bool operator==(const String& a, const Text& b) {
        return a.view() == std::string_view(b);
    }
    friend auto operator<=>(const String& a, const String& b) { return a.view() <=> b.view(); }

private:
    detail::Blob blob_;
};

/// Opaque bytes of a message; borrowed or owned by the same rules as `String`.
class Bytes {
public:
    Bytes() = default;
    // NOLINTBEGIN(google-explicit-constructor): as for String
    Bytes(ByteView bytes);
    operator ByteView() const { return view(); }
    // NOLINTEND(google-explicit-constructor)

    [[nodiscard]] static Bytes borrow(ByteView bytes);

    [[nodiscard]] ByteView view() const { return {blob_.data(), blob_.size()}; }
    [[nodiscard]] std::size_t size() const { return blob_.size(); }
    [[nodiscard]] bool empty() const { return blob_.size() == 0; }

    friend bool operator==(const Bytes& a, const Bytes& b);

private:
    detail::Blob blob_;
};

/// A `records` field: nothing, bytes, or a region that stays where it is.
///
/// Bytes are always borrowed (from a frame that was decoded, or from the caller that encodes). An
/// *external* region is one that the writer only accounts for: its length goes on the wire, its
/// place in the output is noted as a splice, and net/ sends it from the file that `cookie` stands
/// for.
class Records {
public:
    Records() = default;

    [[nodiscard]] static Records bytes(ByteView view);
    /// As decoded from a frame that may be written to: the log patches offsets in place.
    [[nodiscard]] static Records in_frame(MutableBytes frame);
    [[nodiscard]] static Records external(std::uint32_t length, std::uint64_t cookie);

    [[nodiscard]] bool is_null() const { return kind_ == Kind::kNull; }
    [[nodiscard]] bool is_external() const { return kind_ == Kind::kExternal; }
    [[nodiscard]] std::size_t size() const { return size_; }
    /// The bytes; empty for null. An external region has none: asserts.
    [[nodiscard]] ByteView view() const;
    /// The bytes of a decoded frame, writable. Asserts that they are (or are null).
    [[nodiscard]] MutableBytes writable() const;
    /// What an external region was given. Asserts that it is one.
    [[nodiscard]] std::uint64_t cookie() const;

    friend bool operator==(const Records& a, const Records& b);

private:
    enum class Kind : std::uint8_t { kNull, kBytes, kInFrame, kExternal };

    union {
        std::byte* data_ = nullptr;
        std::uint64_t cookie_;
    };
    std::uint32_t size_ = 0;
    Kind kind_ = Kind::kNull;
};

/// A tagged field that this version of our definitions does not know.
struct UnknownTag {
    std::uint32_t tag = 0;
    Bytes data;

    friend bool operator==(const UnknownTag&, const UnknownTag&) = default;
};

/// The unknown tagged fields of one struct, in the order they came; written back when it is
/// encoded. One null pointer for the many structs that have none.
class UnknownTags {
public:
    UnknownTags() = default;
    UnknownTags(const UnknownTags& other)
        : tags_(other.tags_ ? std::make_unique<std::vector<UnknownTag>>(*other.tags_) : nullptr) {}
    UnknownTags(UnknownTags&&) noexcept = default;
    UnknownTags& operator=(const UnknownTags& other) {
        if (this != &other) *this = UnknownTags(other);
        return *this;
    }
    UnknownTags& operator=(UnknownTags&&) noexcept = default;
    ~UnknownTags() = default;

    void add(std::uint32_t tag, Bytes data) {
        if (!tags_) tags_ = std::make_unique<std::vector<UnknownTag>>();
        tags_->push_back({tag, std::move(data)});
    }
    [[nodiscard]] bool empty() const { return !tags_; }
    [[nodiscard]] std::size_t size() const { return tags_ ? tags_->size() : 0; }
    [[nodiscard]] std::span<const UnknownTag> all() const {
        return tags_ ? std::span<const UnknownTag>(*tags_) : std::span<const UnknownTag>();
    }

    friend bool operator==(const UnknownTags& a, const UnknownTags& b);

private:
    std::unique_ptr<std::vector<UnknownTag>> tags_;
};

}  // namespace kaas::wire

template <>
struct std::hash<kaas::wire::String> {
    std::size_t operator()(const kaas::wire::String& text) const noexcept {
        return std::hash<std::string_view>{}(text.view());
    }
};
