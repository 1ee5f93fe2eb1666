#pragma once

#include <fmt/compile.h>

#include <concepts>
#include <iterator>
#include <string>
#include <string_view>

/// JSON written straight into a string: a line of a journal is written for every request, and a
/// tree of values would cost more than all else that a commit does.
namespace kaas::coordinator {

/// Adds a JSON string, with its quotes. `text` must be UTF-8: who takes it in from outside sees to
/// that (`base::to_utf8`).
void append_json(std::string& line, std::string_view text);
/// Adds bytes as a JSON string of base64.
void append_bytes(std::string& line, std::string_view bytes);

inline void append_number(std::string& line, std::integral auto number) {
    fmt::format_to(std::back_inserter(line), FMT_COMPILE("{}"), number);
}

}  // namespace kaas::coordinator
