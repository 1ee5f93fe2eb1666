#include "catalog/config/value.h"

#include "base/result.h"
#include "catalog/config/definition.h"
#include "catalog/config/error.h"
#include "catalog/config/value_form.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace kaas::catalog {
namespace {

bool equal_without_case(std::string_view a, std::string_view b) {
    auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
    return std::ranges::equal(a, b, {}, lower, lower);
}

/// "name: cannot be 'value': why", with a secret left out.
std::unexpected<ConfigError> refuse(const ConfigDefinition& definition, std::string_view text,
                                    std::string_view why) {
    std::string shown =
        definition.sensitive() ? std::string("this value") : fmt::format("'{}'", text);
    return base::fail(ConfigFault::kInvalidValue,
                      fmt::format("{} cannot be {}: {}", definition.name, shown, why));
}

/// Java's `parseInt` and its like: a sign, digits, nothing else.
template <class Integer>
std::optional<Integer> parse_integer(std::string_view text) {
    if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
    Integer value{};
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return value;
}

/// Java's `parseDouble`, without its hexadecimal form.
std::optional<double> parse_double(std::string_view text) {
    if (text == "NaN" || text == "+NaN" || text == "-NaN") return std::nan("");
    bool negative = text.starts_with('-');
    if (negative || text.starts_with('+')) text.remove_prefix(1);
    double sign = negative ? -1 : 1;
    if (text == "Infinity") return sign * std::numeric_limits<double>::infinity();
    if (!text.empty() && std::string_view("dDfF").contains(text.back())) text.remove_suffix(1);
    if (text.empty() || !(text.front() == '.' || (text.front() >= '0' && text.front() <= '9'))) {
        return std::nullopt;
    }
    double value = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (end != text.data() + text.size()) return std::nullopt;
    if (error == std::errc::result_out_of_range) {
        // Java rounds to infinity or zero; from_chars leaves the value alone.
        return sign * (text.contains("e-") || text.contains("E-") ? 0 : HUGE_VAL);
    }
    if (error != std::errc{}) return std::nullopt;
    return sign * value;
}

std::string range_text(const ValueRule& rule) {
    std::string text;
    if (rule.min && rule.max) {
        text = fmt::format("it must be {} to {}", *rule.min, *rule.max);
    } else if (rule.min) {
        text = fmt::format("it must be at least {}", *rule.min);
    } else {
        text = fmt::format("it must be at most {}", *rule.max);
    }
    if (rule.or_value) text += fmt::format(", or {}", *rule.or_value);
    return text;
}

bool in_range(const ValueRule& rule, double value) {
    if (rule.or_value && value == *rule.or_value) return true;
    return !(rule.min && value < *rule.min) && !(rule.max && value > *rule.max);
}

template <class Number>
ConfigResult<ConfigValue> check_number(const ConfigDefinition& definition, std::string_view text,
                                       std::optional<Number> value, std::string_view kind) {
    if (!value) return refuse(definition, text, fmt::format("it must be {}", kind));
    if (!in_range(definition.rule, static_cast<double>(*value))) {
        return refuse(definition, text, range_text(definition.rule));
    }
    return ConfigValue(*value);
}

bool is_allowed(const ValueRule& rule, std::string_view value) {
    if (rule.one_of.empty()) return true;
    return std::ranges::any_of(rule.one_of, [&](std::string_view good) {
        return rule.any_case ? equal_without_case(good, value) : good == value;
    });
}

std::string one_of_text(const ValueRule& rule) {
    return fmt::format("it must be one of {}", fmt::join(rule.one_of, ", "));
}

ConfigResult<ConfigValue> check_string(const ConfigDefinition& definition, std::string_view text) {
    if (definition.rule.not_empty && text.empty())
        return refuse(definition, text, "it must not be empty");
    if (!is_allowed(definition.rule, text))
        return refuse(definition, text, one_of_text(definition.rule));
    if (auto wrong = wrong_form(definition.rule.form, text))
        return refuse(definition, text, *wrong);
    return ConfigValue(std::string(text));
}

ConfigResult<ConfigValue> check_list(const ConfigDefinition& definition, std::string_view text) {
    const ValueRule& rule = definition.rule;
    std::vector<std::string> elements;
    for (auto& element : split_list(text)) {
        if (rule.unique && element.empty()) {
            return refuse(definition, text, "a name between two commas is missing");
        }
        bool allowed = !rule.unique || is_allowed(rule, element);
        if (!allowed) return refuse(definition, text, one_of_text(rule));
        if (rule.unique && std::ranges::find(elements, element) != elements.end()) continue;
        elements.push_back(std::move(element));
    }
    if (rule.not_empty && elements.empty()) return refuse(definition, text, "it must not be empty");
    if (auto wrong = wrong_form(rule.form, text)) return refuse(definition, text, *wrong);
    return ConfigValue(std::move(elements));
}

}  // namespace

ConfigResult<ConfigValue> parse_value(const ConfigDefinition& definition, std::string_view text) {
    text = trim(text);
    switch (definition.type) {
        case ConfigType::kBoolean:
            if (equal_without_case(text, "true")) return ConfigValue(true);
            if (equal_without_case(text, "false")) return ConfigValue(false);
            return refuse(definition, text, "it must be true or false");
        case ConfigType::kShort:
            return check_number(definition, text, parse_integer<std::int16_t>(text),
                                "a 16-bit integer");
        case ConfigType::kInt:
            return check_number(definition, text, parse_integer<std::int32_t>(text),
                                "a 32-bit integer");
        case ConfigType::kLong:
            return check_number(definition, text, parse_integer<std::int64_t>(text),
                                "a 64-bit integer");
        case ConfigType::kDouble:
            return check_number(definition, text, parse_double(text), "a number");
        case ConfigType::kList: return check_list(definition, text);
        case ConfigType::kString:
        case ConfigType::kClass:
        case ConfigType::kPassword: return check_string(definition, text);
    }
    return refuse(definition, text, "its type is unknown");
}

std::optional<std::string> to_text(const ConfigValue& value) {
    return std::visit(
        [](const auto& held) -> std::optional<std::string> {
            using Held = std::decay_t<decltype(held)>;
            if constexpr (std::is_same_v<Held, std::monostate>) {
                return std::nullopt;
            } else if constexpr (std::is_same_v<Held, bool>) {
                return held ? "true" : "false";
            } else if constexpr (std::is_same_v<Held, double>) {
                return java_double(held);
            } else if constexpr (std::is_same_v<Held, std::string>) {
                return held;
            } else if constexpr (std::is_same_v<Held, std::vector<std::string>>) {
                return fmt::format("{}", fmt::join(held, ","));
            } else {
                return std::to_string(held);
            }
        },
        value);
}

std::string java_double(double value) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
    if (value == 0) return std::signbit(value) ? "-0.0" : "0.0";
    double size = std::fabs(value);
    char buffer[400];
    bool plain = size >= 1e-3 && size < 1e7;
    auto format = plain ? std::chars_format::fixed : std::chars_format::scientific;
    auto [end, error] = std::to_chars(buffer, buffer + sizeof(buffer), value, format);
    std::string text(buffer, end);
    if (plain) return text.contains('.') ? text : text + ".0";
    std::size_t e = text.find('e');
    std::string digits = text.substr(0, e);
    if (!digits.contains('.')) digits += ".0";
    int exponent = 0;
    std::size_t from = e + (text[e + 1] == '+' ? 2 : 1);
    std::from_chars(text.data() + from, text.data() + text.size(), exponent);
    return fmt::format("{}E{}", digits, exponent);
}

std::vector<std::string> split_list(std::string_view text) {
    text = trim(text);
    std::vector<std::string> elements;
    if (text.empty()) return elements;
    while (true) {
        std::size_t comma = text.find(',');
        elements.emplace_back(trim(text.substr(0, comma)));
        if (comma == std::string_view::npos) return elements;
        text.remove_prefix(comma + 1);
    }
}

std::string_view trim(std::string_view text) {
    auto blank = [](char c) { return static_cast<unsigned char>(c) <= ' '; };
    while (!text.empty() && blank(text.front())) text.remove_prefix(1);
    while (!text.empty() && blank(text.back())) text.remove_suffix(1);
    return text;
}

}  // namespace kaas::catalog
