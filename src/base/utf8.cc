#include "base/utf8.h"

#include <algorithm>
#include <cstddef>
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

}  // namespace

bool is_utf8(std::string_view text) {
    while (!text.empty()) {
        const auto sequence = sequence_of(static_cast<unsigned char>(text[0]));
        if (sequence.length == 0 || sequence.length > text.size()) return false;
        if (sequence.length > 1) {
            const auto second = static_cast<unsigned char>(text[1]);
            if (second < sequence.second_min || second > sequence.second_max) return false;
            if (!std::ranges::all_of(text.substr(2, sequence.length - 2), is_continuation))
                return false;
        }
        text.remove_prefix(sequence.length);
    }
    return true;
}

}  // namespace kaas::base
