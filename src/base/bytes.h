#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace kaas::base {

/// Borrowed bytes; the same rules as `std::span` (CONTRIBUTING, "How code reads").
using ByteView = std::span<const std::byte>;
using MutableBytes = std::span<std::byte>;

[[nodiscard]] inline ByteView as_bytes(std::string_view text) {
    return std::as_bytes(std::span(text.data(), text.size()));
}
[[nodiscard]] inline std::string_view as_text(ByteView bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Reads a big-endian integer (Kafka's and RFC 1700's order) at `from`, which need not be aligned.
template <std::integral T>
[[nodiscard]] T load_be(const std::byte* from) {
    T value;
    std::memcpy(&value, from, sizeof(T));
    if constexpr (sizeof(T) > 1 && std::endian::native == std::endian::little) {
        value = std::byteswap(value);
    }
    return value;
}

/// Writes a big-endian integer at `to`, which need not be aligned.
template <std::integral T>
void store_be(std::byte* to, T value) {
    if constexpr (sizeof(T) > 1 && std::endian::native == std::endian::little) {
        value = std::byteswap(value);
    }
    std::memcpy(to, &value, sizeof(T));
}

}  // namespace kaas::base
