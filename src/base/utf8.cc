#include "base/utf8.h"

#include <cstddef>
#include <string>
#include <string_view>

namespace kaas::base {
namespace {

/// What may follow a lead byte: how many bytes in all, and the range of the second one, which is
/// where overlong forms, surrogates and too large numbers show. Length 0: no lead byte.
struct Sequence {
    std::size_t length;
    unsigned char second_min;
    unsigned char second_max;
};

Sequence sequence_of(unsigned char lead) {
    if (lead < 0x80) return {1, 0, 0};
    if (lead < 0xC2) return {0, 0, 0};
    if (lead < 0xE0) return {2, 0x80, 0xBF};
    if (lead == 0xE0) return {3, 0xA0, 0xBF};
    if (lead == 0xED) return {3, 0x80, 0x9F};
    if (lead < 0xF0) return {3, 0x80, 0xBF};
    if (lead == 0xF0) return {4, 0x90, 0xBF};
    if (lead < 0xF4) return {4, 0x80, 0xBF};
    if (lead == 0xF4) return {4, 0x80, 0x8F};
    return {0, 0, 0};
}

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

/// How many bytes of `text` belong to its first character, and whether they are one. Of what is
/// none, so many as Java replaces by one U+FFFD.
struct Character {
    std::size_t length;
    bool good;
};
Character first_character(std::string_view text) {
    const auto sequence = sequence_of(static_cast<unsigned char>(text[0]));
    if (sequence.length == 0) return {1, false};
    std::size_t length = 1;
    if (sequence.length > 1 && text.size() > 1) {
        const auto second = static_cast<unsigned char>(text[1]);
        const bool surrogate = text[0] == '\xED' && second > sequence.second_max && second < 0xC0;
        if (!surrogate && (second < sequence.second_min || second > sequence.second_max)) {
            return {1, false};
        }
        length = 2;
        while (length < sequence.length && length < text.size() && is_continuation(text[length])) {
            ++length;
        }
        if (surrogate) return {length, false};
    }
    return {length, length == sequence.length};
}

}  // namespace

bool is_utf8(std::string_view text) {
    while (!text.empty()) {
        const auto character = first_character(text);
        if (!character.good) return false;
        text.remove_prefix(character.length);
    }
    return true;
}

std::string to_utf8(std::string_view text) {
    std::string result;
    result.reserve(text.size());
    while (!text.empty()) {
        const auto character = first_character(text);
        result += character.good ? text.substr(0, character.length) : "\xEF\xBF\xBD";
        text.remove_prefix(character.length);
    }
    return result;
}

}  // namespace kaas::base
