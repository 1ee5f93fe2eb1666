#pragma once

#include "catalog/config/error.h"
#include "catalog/config/values.h"

#include <map>
#include <string>
#include <string_view>

namespace kaas::broker {

/// Reads text in the form of Java's `Properties.load`, as `server.properties` is: `key=value`,
/// `key: value` or `key value`; `#` and `!` begin a comment; a backslash at the end of a line goes
/// on in the next one;
/// `\t \n \r \f \\ \uXXXX`, and every other character behind a backslash means itself. The text is
/// UTF-8. Of a key that stands twice, the later value counts. Errors: kInvalidValue for a broken
/// `\u`, with the line.
[[nodiscard]] catalog::ConfigResult<catalog::ConfigMap> parse_properties(std::string_view text);

}  // namespace kaas::broker
