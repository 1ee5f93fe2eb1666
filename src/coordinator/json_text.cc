#include "coordinator/json_text.h"

#include "base/base64.h"

#include <cstddef>
#include <string>
#include <string_view>

namespace kaas::coordinator {
namespace {

constexpr std::string_view kHexDigits = "0123456789abcdef";

bool stands_for_itself(char c) {
    return static_cast<unsigned char>(c) >= 0x20 && c != '"' && c != '\\';
}

void append_escaped(std::string& line, char c) {
    line += '\\';
    switch (c) {
        case '"': line += '"'; return;
        case '\\': line += '\\'; return;
        case '\n': line += 'n'; return;
        case '\t': line += 't'; return;
        default:
            line += "u00";
            line += kHexDigits[static_cast<unsigned char>(c) >> 4U];
            line += kHexDigits[static_cast<unsigned char>(c) & 0xFU];
    }
}

}  // namespace

void append_json(std::string& line, std::string_view text) {
    line += '"';
    while (!text.empty()) {
        std::size_t plain = 0;
        while (plain < text.size() && stands_for_itself(text[plain])) ++plain;
        line += text.substr(0, plain);
        text.remove_prefix(plain);
        if (text.empty()) break;
        append_escaped(line, text.front());
        text.remove_prefix(1);
    }
    line += '"';
}

void append_bytes(std::string& line, std::string_view bytes) {
    line += '"';
    line += base::to_base64(bytes);
    line += '"';
}

}  // namespace kaas::coordinator
