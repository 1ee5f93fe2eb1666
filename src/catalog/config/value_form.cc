#include "catalog/config/value_form.h"

#include "catalog/config/definition.h"
#include "catalog/config/value.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace kaas::catalog {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool all_digits(std::string_view text) {
    return !text.empty() && std::ranges::all_of(text, is_digit);
}

bool is_throttled_replica(std::string_view entry) {
    std::size_t colon = entry.find(':');
    return entry.empty() ||
           (colon != std::string_view::npos && all_digits(entry.substr(0, colon)) &&
            all_digits(entry.substr(colon + 1)));
}

/// Takes "12X" off the front of `text` for one of `units`, which come in order; false when it
/// cannot.
bool take_fields(std::string_view& text, std::string_view units) {
    bool any = false;
    while (!text.empty() && text.front() != 'T') {
        std::size_t digits = 0;
        while (digits < text.size() && is_digit(text[digits])) ++digits;
        std::size_t end = digits;
        bool fraction = digits < text.size() && text[digits] == '.' && units.contains('S');
        if (fraction) {
            ++end;
            while (end < text.size() && is_digit(text[end])) ++end;
        }
        if (digits == 0 || end == text.size()) return false;
        std::size_t unit = units.find(text[end]);
        if (unit == std::string_view::npos || (fraction && text[end] != 'S')) return false;
        units.remove_prefix(unit + 1);
        text.remove_prefix(end + 1);
        any = true;
    }
    return any;
}

/// ISO 8601 as Java's `Duration.parse` takes it, but without signs: PnDTnHnMn.nS.
bool is_duration(std::string_view text) {
    if (!text.starts_with('P')) return false;
    text.remove_prefix(1);
    bool any = take_fields(text, "D");
    if (text.empty()) return any;
    if (!text.starts_with('T')) return false;
    text.remove_prefix(1);
    return take_fields(text, "HMS") && text.empty();
}

bool is_offset_reset(std::string_view text) {
    constexpr std::string_view kDuration = "by_duration:";
    if (text.starts_with(kDuration)) return is_duration(text.substr(kDuration.size()));
    return text == "latest" || text == "earliest";
}

}  // namespace

std::optional<std::string> wrong_form(ValueForm form, std::string_view text) {
    switch (form) {
        case ValueForm::kAny: return std::nullopt;
        case ValueForm::kThrottledReplicas:
            if (text == "*" || std::ranges::all_of(split_list(text), is_throttled_replica)) {
                return std::nullopt;
            }
            return "it must be * or entries such as 0:1,1:2 (partition:broker)";
        case ValueForm::kOffsetReset:
            if (is_offset_reset(text)) return std::nullopt;
            return "it must be latest, earliest, or by_duration: and a duration such as PT1H30M";
    }
    return std::nullopt;
}

}  // namespace kaas::catalog
