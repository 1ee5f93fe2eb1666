#pragma once

#include "catalog/config/definition.h"

#include <optional>
#include <string>
#include <string_view>

namespace kaas::catalog {

/// What is wrong with `text` under `form`, as the end of an error message; empty when nothing is.
[[nodiscard]] std::optional<std::string> wrong_form(ValueForm form, std::string_view text);

}  // namespace kaas::catalog
