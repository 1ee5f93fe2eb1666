#include "coordinator/json_text.h"

#include <fmt/format.h>

#include <iterator>

namespace kaas::coordinator {

void append_json(std::string& line, std::string_view text) {
    line += '"';
    for (const char c : text) {
        if (c == '"' || c == '\\') {
            line += '\\';
            line += c;
        } else if (static_cast<unsigned char>(c) < 0x20) {
            fmt::format_to(std::back_inserter(line), "\\u{:04x}", static_cast<unsigned>(c));
        } else {
            line += c;
        }
    }
    line += '"';
}

}  // namespace kaas::coordinator
