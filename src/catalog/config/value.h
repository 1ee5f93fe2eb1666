#pragma once

#include "catalog/config/definition.h"
#include "catalog/config/error.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace kaas::catalog {

/// A value of a config, by its type: boolean, short, int, long, double, string (string, class,
/// password), list. `std::monostate` is Apache's null: not set, and no default.
using ConfigValue = std::variant<std::monostate, bool, std::int16_t, std::int32_t, std::int64_t,
                                 double, std::string, std::vector<std::string>>;

/// Reads `text` as Apache `ConfigDef.parseType` does (blanks around it do not count) and checks it.
/// Errors: kInvalidValue; the context names the config, the value unless it is secret, and what is
/// good.
[[nodiscard]] ConfigResult<ConfigValue> parse_value(const ConfigDefinition& definition,
                                                    std::string_view text);

/// The value as DescribeConfigs shows it (Apache `ConfigDef.convertToString`); empty for null.
[[nodiscard]] std::optional<std::string> to_text(const ConfigValue& value);

/// The shortest decimal that reads back as `value`, written as Java writes doubles: 0.5, 1.0E10.
[[nodiscard]] std::string java_double(double value);

/// Elements between commas, blanks around them removed; empty text has none.
[[nodiscard]] std::vector<std::string> split_list(std::string_view text);

/// Without characters up to the blank at both ends, as Java's `String.trim`.
[[nodiscard]] std::string_view trim(std::string_view text);

}  // namespace kaas::catalog
