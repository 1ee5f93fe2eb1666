#pragma once

#include <string>
#include <string_view>

namespace kaas::coordinator {

/// Adds a JSON string, with its quotes. `text` must be UTF-8: who takes it in from outside sees to
/// that (`base::to_utf8`).
void append_json(std::string& line, std::string_view text);

}  // namespace kaas::coordinator
