#include "broker/config/properties.h"

#include "base/result.h"
#include "catalog/config/error.h"
#include "catalog/config/values.h"

#include <fmt/format.h>

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace kaas::broker {
namespace {

using catalog::ConfigFault;
using catalog::ConfigResult;

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\f'; }
bool is_end_of_line(char c) { return c == '\n' || c == '\r'; }

/// Hands out logical lines: comments and empty ones left out, continued ones joined, escapes still
/// in.
class LineReader {
public:
    explicit LineReader(std::string_view text) : rest_(text) {}

    std::optional<std::string> next() {
        while (!rest_.empty()) {
            std::string_view line = without_indent(take_natural());
            if (line.empty() || line.front() == '#' || line.front() == '!') continue;
            std::string logical(line);
            while (is_continued(logical)) {
                logical.pop_back();
                if (rest_.empty()) break;
                logical += without_indent(take_natural());
            }
            return logical;
        }
        return std::nullopt;
    }
    /// Number of the line read last, from 1.
    [[nodiscard]] std::size_t line() const { return line_; }

private:
    std::string_view take_natural() {
        std::size_t end = 0;
        while (end < rest_.size() && !is_end_of_line(rest_[end])) ++end;
        std::string_view line = rest_.substr(0, end);
        std::size_t terminator = end == rest_.size()                     ? 0
                                 : rest_.substr(end).starts_with("\r\n") ? 2
                                                                         : 1;
        rest_.remove_prefix(end + terminator);
        ++line_;
        return line;
    }
    static std::string_view without_indent(std::string_view line) {
        while (!line.empty() && is_blank(line.front())) line.remove_prefix(1);
        return line;
    }
    /// An odd number of backslashes at the end: the last one is not itself escaped.
    static bool is_continued(std::string_view line) {
        std::size_t backslashes = 0;
        while (backslashes < line.size() && line[line.size() - 1 - backslashes] == '\\')
            ++backslashes;
        return backslashes % 2 == 1;
    }

    std::string_view rest_;
    std::size_t line_ = 0;
};

void append_utf8(std::string& out, std::uint32_t point) {
    auto add = [&out](std::uint32_t byte) { out.push_back(static_cast<char>(byte)); };
    if (point < 0x80) {
        add(point);
    } else if (point < 0x800) {
        add(0xC0 | (point >> 6));
        add(0x80 | (point & 0x3F));
    } else if (point < 0x10000) {
        add(0xE0 | (point >> 12));
        add(0x80 | ((point >> 6) & 0x3F));
        add(0x80 | (point & 0x3F));
    } else {
        add(0xF0 | (point >> 18));
        add(0x80 | ((point >> 12) & 0x3F));
        add(0x80 | ((point >> 6) & 0x3F));
        add(0x80 | (point & 0x3F));
    }
}

/// Takes the four digits behind `\u` off `text`.
std::optional<std::uint32_t> take_utf16_unit(std::string_view& text) {
    std::uint32_t unit = 0;
    if (text.size() < 4) return std::nullopt;
    auto [end, error] = std::from_chars(text.data(), text.data() + 4, unit, 16);
    if (error != std::errc{} || end != text.data() + 4) return std::nullopt;
    text.remove_prefix(4);
    return unit;
}

/// Decodes one `\u` whose two characters are gone already, and its low surrogate if it has one.
bool unescape_unicode(std::string_view& text, std::string& out) {
    auto unit = take_utf16_unit(text);
    if (!unit) return false;
    if (*unit >= 0xD800 && *unit < 0xDC00 && text.starts_with("\\u")) {
        std::string_view after = text.substr(2);
        if (auto low = take_utf16_unit(after); low && *low >= 0xDC00 && *low < 0xE000) {
            text = after;
            append_utf8(out, 0x10000 + ((*unit - 0xD800) << 10) + (*low - 0xDC00));
            return true;
        }
    }
    append_utf8(out, *unit >= 0xD800 && *unit < 0xE000 ? 0xFFFD : *unit);
    return true;
}

std::optional<std::string> unescape(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    while (!text.empty()) {
        char c = text.front();
        text.remove_prefix(1);
        if (c != '\\' || text.empty()) {
            if (c != '\\') out.push_back(c);
            continue;
        }
        char escaped = text.front();
        text.remove_prefix(1);
        switch (escaped) {
            case 't': out.push_back('\t'); break;
            case 'n': out.push_back('\n'); break;
            case 'r': out.push_back('\r'); break;
            case 'f': out.push_back('\f'); break;
            case 'u':
                if (!unescape_unicode(text, out)) return std::nullopt;
                break;
            default: out.push_back(escaped);
        }
    }
    return out;
}

struct RawEntry {
    std::string_view key;
    std::string_view value;
};

/// The key ends at the first blank, `=` or `:` that no backslash escapes; blanks and one `=` or `:`
/// follow.
RawEntry split(std::string_view line) {
    std::size_t end = 0;
    while (end < line.size()) {
        char c = line[end];
        if (c == '\\' && end + 1 < line.size()) {
            end += 2;
            continue;
        }
        if (is_blank(c) || c == '=' || c == ':') break;
        ++end;
    }
    std::size_t value = end;
    while (value < line.size() && is_blank(line[value])) ++value;
    if (value < line.size() && (line[value] == '=' || line[value] == ':')) ++value;
    while (value < line.size() && is_blank(line[value])) ++value;
    return {.key = line.substr(0, end), .value = line.substr(value)};
}

}  // namespace

ConfigResult<catalog::ConfigMap> parse_properties(std::string_view text) {
    catalog::ConfigMap properties;
    LineReader lines(text);
    while (auto line = lines.next()) {
        RawEntry raw = split(*line);
        auto key = unescape(raw.key);
        auto value = unescape(raw.value);
        if (!key || !value) {
            return base::fail(
                ConfigFault::kInvalidValue,
                fmt::format("line {}: \\u must be followed by four hexadecimal digits",
                            lines.line()));
        }
        properties.insert_or_assign(*std::move(key), *std::move(value));
    }
    return properties;
}

}  // namespace kaas::broker
