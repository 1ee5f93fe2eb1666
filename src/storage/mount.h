#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace kaas::storage {

/// How a file system came into the tree, as Linux tells it in /proc/self/mountinfo
/// (proc_pid_mountinfo(5)).
struct Mount {
    std::string point;
    std::string type;    ///< "ext4", "nfs4", "fuse.gcsfuse"
    std::string source;  ///< a device, "server:/export"
    /// Of the mount and of the file system together: "ro", "hard", "acregmax=60".
    std::set<std::string, std::less<>> options;
};

/// The line of the mount with that id; none when it is not there.
[[nodiscard]] std::optional<Mount> find_mount(std::string_view mountinfo, std::uint64_t id);

}  // namespace kaas::storage
