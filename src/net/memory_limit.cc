#include "net/memory_limit.h"

#include "base/unique_fd.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace kaas::net {
namespace {

constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();

/// The beginning of a kernel file, which is all that these files have; empty when it cannot be
/// read.
std::string read_text(const std::string& path) {
    base::UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file) return {};
    std::array<char, 4096> text;
    auto bytes = ::read(file.get(), text.data(), text.size());
    return bytes > 0 ? std::string(text.data(), static_cast<std::size_t>(bytes)) : std::string();
}

/// Unlimited for "max" and for what is no number.
std::uint64_t number_in(std::string_view text) {
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    std::uint64_t value = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end != text.data() ? value : kUnlimited;
}

/// What stands after `key` at the start of a line of `text`, as a view of it.
std::optional<std::string_view> value_of(std::string_view text, std::string_view key) {
    std::size_t at = text.starts_with(key) ? 0 : text.find(std::string("\n").append(key));
    if (at == std::string_view::npos) return std::nullopt;
    text.remove_prefix(text.find(key, at) + key.size());
    return text.substr(0, text.find('\n'));
}

std::uint64_t least_up_the_tree(const std::string& root, std::string group,
                                const std::string& file) {
    std::uint64_t least = kUnlimited;
    for (;;) {
        least = std::min(least, number_in(read_text(root + group + "/" + file)));
        std::size_t slash = group.rfind('/');
        if (slash == std::string::npos) return least;
        group.resize(slash);
    }
}

}  // namespace

std::uint64_t memory_limit_bytes(const std::string& proc, const std::string& cgroup) {
    std::uint64_t least = kUnlimited;
    std::string machine = read_text(proc + "/meminfo");
    if (auto total = value_of(machine, "MemTotal:")) {
        std::uint64_t kib = number_in(*total);
        if (kib <= kUnlimited / 1024) least = kib * 1024;
    }
    std::string groups = read_text(proc + "/self/cgroup");
    // In a container the group is often seen as "/", or under a path that is not mounted: the walk
    // up to the root finds the limit there.
    if (auto group = value_of(groups, "0::")) {
        least = std::min(least, least_up_the_tree(cgroup, std::string(*group), "memory.max"));
    }
    std::size_t at = groups.find(":memory:");
    if (at != std::string::npos) {
        std::string group = groups.substr(at + 8, groups.find('\n', at) - at - 8);
        least =
            std::min(least, least_up_the_tree(cgroup + "/memory", group, "memory.limit_in_bytes"));
    }
    return least;
}

std::size_t default_request_memory_bytes() { return memory_limit_bytes() / 4; }

}  // namespace kaas::net
