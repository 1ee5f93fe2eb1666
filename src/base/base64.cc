#include "base/base64.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kaas::base {
namespace {

constexpr std::string_view kDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::uint8_t kNoDigit = 0xFF;

constexpr std::array<std::uint8_t, 256> kValues = [] {
    std::array<std::uint8_t, 256> values{};
    values.fill(kNoDigit);
    for (std::size_t i = 0; i < kDigits.size(); ++i) {
        values.at(static_cast<unsigned char>(kDigits[i])) = static_cast<std::uint8_t>(i);
    }
    return values;
}();

std::uint32_t value_of(char digit) { return kValues[static_cast<unsigned char>(digit)]; }

}  // namespace

std::string to_base64(std::string_view bytes) {
    std::string text;
    text.reserve((bytes.size() + 2) / 3 * 4);
    while (!bytes.empty()) {
        const auto taken = bytes.substr(0, 3);
        std::uint32_t group = 0;
        for (std::size_t i = 0; i < 3; ++i) {
            group = group << 8U |
                    (i < taken.size() ? static_cast<unsigned char>(taken[i]) : std::uint32_t{0});
        }
        for (std::size_t i = 0; i < 4; ++i) {
            text += i <= taken.size() ? kDigits[group >> (18 - 6 * i) & 0x3FU] : '=';
        }
        bytes.remove_prefix(taken.size());
    }
    return text;
}

std::optional<std::string> from_base64(std::string_view text) {
    if (text.size() % 4 != 0) return std::nullopt;
    std::string bytes;
    bytes.reserve(text.size() / 4 * 3);
    while (!text.empty()) {
        const bool last = text.size() == 4;
        std::size_t digits = 4;
        if (last && text[3] == '=') digits = text[2] == '=' ? 2 : 3;
        std::uint32_t group = 0;
        for (std::size_t i = 0; i < 4; ++i) {
            const std::uint32_t value = i < digits ? value_of(text[i]) : 0;
            if (value == kNoDigit) return std::nullopt;
            group = group << 6U | value;
        }
        for (std::size_t i = 0; i + 1 < digits; ++i) {
            bytes += static_cast<char>(group >> (16 - 8 * i) & 0xFFU);
        }
        // Bits behind the last byte: only our own zeros have one way back.
        if ((group & ((1U << (8 * (4 - digits))) - 1)) != 0) return std::nullopt;
        text.remove_prefix(4);
    }
    return bytes;
}

}  // namespace kaas::base
