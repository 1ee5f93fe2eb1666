#include "storage/mount.h"

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace kaas::storage {
namespace {

std::vector<std::string_view> split(std::string_view text, char at) {
    std::vector<std::string_view> parts;
    while (true) {
        const auto end = text.find(at);
        parts.push_back(text.substr(0, end));
        if (end == std::string_view::npos) return parts;
        text.remove_prefix(end + 1);
    }
}

/// Spaces and the like stand as a backslash and three octal digits.
std::string unescaped(std::string_view text) {
    constexpr std::size_t kDigits = 3;
    std::string out;
    for (std::size_t at = 0; at < text.size(); ++at) {
        unsigned value = 0;
        const auto* begin = text.data() + at + 1;
        if (text[at] == '\\' && at + kDigits < text.size() &&
            std::from_chars(begin, begin + kDigits, value, 8).ptr == begin + kDigits) {
            out += static_cast<char>(value);
            at += kDigits;
        } else {
            out += text[at];
        }
    }
    return out;
}

void add_options(Mount& mount, std::string_view list) {
    for (const auto option : split(list, ',')) mount.options.emplace(option);
}

/// `36 35 98:0 /root /point options optional... - type source options`
std::optional<Mount> parse_line(std::string_view line, std::uint64_t wanted) {
    const auto words = split(line, ' ');
    std::uint64_t id = 0;
    const auto first = words.front();
    if (std::from_chars(first.data(), first.data() + first.size(), id).ec != std::errc() ||
        id != wanted) {
        return std::nullopt;
    }
    constexpr std::size_t kPoint = 4;
    constexpr std::size_t kOptions = 5;
    std::size_t dash = kOptions + 1;
    while (dash < words.size() && words[dash] != "-") ++dash;
    if (dash + 3 >= words.size()) return std::nullopt;
    Mount mount{.point = unescaped(words[kPoint]),
                .type = std::string(words[dash + 1]),
                .source = unescaped(words[dash + 2]),
                .options = {}};
    add_options(mount, words[kOptions]);
    add_options(mount, words[dash + 3]);
    return mount;
}

}  // namespace

std::optional<Mount> find_mount(std::string_view mountinfo, std::uint64_t id) {
    for (const auto line : split(mountinfo, '\n')) {
        auto mount = parse_line(line, id);
        if (mount) return mount;
    }
    return std::nullopt;
}

}  // namespace kaas::storage
