#include "base/uuid.h"

#include "base/assert.h"

#include <sys/random.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kaas::base {
namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
constexpr std::size_t kTextLength = 22;

std::optional<std::uint32_t> digit(char c) {
    auto at = kAlphabet.find(c);
    if (at == std::string_view::npos) return std::nullopt;
    return static_cast<std::uint32_t>(at);
}

}  // namespace

Uuid Uuid::random() {
    Uuid id;
    do {
        ssize_t got = ::getrandom(id.bytes.data(), id.bytes.size(), 0);
        KAAS_ASSERT(got == static_cast<ssize_t>(id.bytes.size()));
        id.bytes[6] = static_cast<std::uint8_t>((id.bytes[6] & 0x0F) | 0x40);
        id.bytes[8] = static_cast<std::uint8_t>((id.bytes[8] & 0x3F) | 0x80);
    } while (id.to_string().front() == '-');
    return id;
}

std::optional<Uuid> Uuid::parse(std::string_view text) {
    if (text.size() != kTextLength) return std::nullopt;
    Uuid id;
    std::uint32_t bits = 0;
    int held = 0;
    std::size_t out = 0;
    for (char c : text) {
        auto value = digit(c);
        if (!value) return std::nullopt;
        bits = (bits << 6) | *value;
        held += 6;
        if (held >= 8 && out < id.bytes.size()) {
            held -= 8;
            id.bytes[out++] = static_cast<std::uint8_t>(bits >> held);
        }
    }
    return id;
}

std::string Uuid::to_string() const {
    std::string text;
    text.reserve(kTextLength);
    std::uint32_t bits = 0;
    int held = 0;
    for (std::uint8_t byte : bytes) {
        bits = (bits << 8) | byte;
        held += 8;
        while (held >= 6) {
            held -= 6;
            text.push_back(kAlphabet[(bits >> held) & 0x3F]);
        }
    }
    text.push_back(kAlphabet[(bits << (6 - held)) & 0x3F]);
    return text;
}

}  // namespace kaas::base
