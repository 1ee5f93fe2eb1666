#include "wire/testing/json.h"

#include "wire/types.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kaas::wire::testing {
namespace {

std::string quoted(std::string_view text) {
    std::string result = "\"";
    for (char c : text) {
        if (c == '"' || c == '\\') {
            result += '\\';
            result += c;
        } else if (static_cast<unsigned char>(c) < 0x20) {
            result += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
        } else {
            result += c;
        }
    }
    return result + '"';
}

constexpr char kAlphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

std::string base64(ByteView bytes) {
    std::string result;
    for (std::size_t at = 0; at < bytes.size(); at += 3) {
        ByteView group = bytes.subspan(at, std::min<std::size_t>(3, bytes.size() - at));
        std::uint32_t bits = 0;
        for (std::size_t i = 0; i < 3; ++i) {
            bits = bits << 8 | (i < group.size() ? std::to_integer<std::uint32_t>(group[i]) : 0);
        }
        for (std::size_t i = 0; i < 4; ++i) {
            result += i <= group.size() ? kAlphabet[bits >> (18 - 6 * i) & 0x3F] : '=';
        }
    }
    return result;
}

}  // namespace

void Json::key(std::string_view name) {
    if (text_.back() != '{') text_ += ',';
    text_ += quoted(name) + ':';
}

void Json::member(std::string_view name, const Records& records, std::int16_t version) {
    if (records.is_null()) return member(name, std::optional<int>(), version);
    member(std::string(name) + "SizeInBytes", records.size(), version);
}

void Json::put(double value, std::int16_t) { text_ += fmt::format("{:.17e}", value); }
void Json::put(const Uuid& value, std::int16_t) { text_ += quoted(value.to_string()); }
void Json::put(const String& value, std::int16_t) { text_ += quoted(value); }
void Json::put(const Bytes& value, std::int16_t) { text_ += quoted(base64(value)); }

}  // namespace kaas::wire::testing
