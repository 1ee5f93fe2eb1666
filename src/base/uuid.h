#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace kaas::base {

/// 128 bits, in wire order (big endian). Text form is Kafka's: URL-safe base64 without padding, 22
/// characters (Apache `org.apache.kafka.common.Uuid`).
struct Uuid {
    std::array<std::uint8_t, 16> bytes{};

    /// From the system's random source; never zero, never starting with a dash in text (Apache
    /// avoids it, for command lines), version and variant bits as RFC 4122 version 4.
    [[nodiscard]] static Uuid random();
    /// Empty when `text` is not 22 characters of URL-safe base64.
    [[nodiscard]] static std::optional<Uuid> parse(std::string_view text);

    [[nodiscard]] std::string to_string() const;
    [[nodiscard]] bool is_zero() const { return *this == Uuid{}; }

    friend auto operator<=>(const Uuid&, const Uuid&) = default;
};

}  // namespace kaas::base

template <>
struct std::hash<kaas::base::Uuid> {
    std::size_t operator()(const kaas::base::Uuid& id) const noexcept {
        std::size_t words[2];
        static_assert(sizeof(words) == sizeof(id.bytes));
        std::memcpy(words, id.bytes.data(), sizeof(words));
        return words[0] ^ (words[1] * 0x9E3779B97F4A7C15U);
    }
};
