#include "cluster/volume_check.h"
#include "storage/mount.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

namespace kaas::cluster {
namespace {

constexpr std::string_view kProperty = "mount";
constexpr std::string_view kUseAnother = "Put the volume on a file system of docs/volumes.md.";

/// Kinds whose promises are known to be too weak, whatever a test sees on a good day.
struct Refused {
    std::string_view type;
    std::string_view why;
};
constexpr std::array<Refused, 8> kRefused = {{
    {"cifs", "SMB opens, renames and removes by other rules"},
    {"smb3", "SMB opens, renames and removes by other rules"},
    {"smbfs", "SMB opens, renames and removes by other rules"},
    {"fuse.gcsfuse", "an object store has no append and no exclusive directory"},
    {"fuse.s3fs", "an object store renames by copying"},
    {"fuse.goofys", "an object store renames by copying"},
    {"fuse.rclone", "what is synced is only in a local cache"},
    {"fuse.blobfuse2", "what is synced is only in a local cache"},
}};
/// (nfs(5); DESIGN 9.)
constexpr std::array<Refused, 4> kRefusedOptions = {{
    {"soft", "a call that took too long fails, though it may still happen"},
    {"softerr", "a call that took too long fails, though it may still happen"},
    {"softreval", "while the server is away, a cache answers whether a session lives"},
    {"nocto", "an open does not ask the server for what others have written"},
}};

Finding bad(std::string what, std::string_view advice) {
    return {kProperty, Verdict::kBad, std::move(what), advice};
}

Finding check_nfs(const storage::Mount& mount, std::string what) {
    for (const auto& [option, why] : kRefusedOptions) {
        if (!mount.options.contains(option)) continue;
        return bad(fmt::format("{} with {}: {}", what, option, why),
                   "Mount with hard, and without this option.");
    }
    const bool is_old = std::ranges::any_of(mount.options, [](const std::string& option) {
        return option == "vers=2" || option == "vers=3" || option == "vers=4.0";
    });
    if (!is_old) return {kProperty, Verdict::kGood, std::move(what), {}};
    return {kProperty, Verdict::kNote, what + " before version 4.1",
            "Mount with vers=4.1 or later where the server can: its requests are done once."};
}

}  // namespace

Finding check_mount(const storage::Mount& mount) {
    auto what = fmt::format("{} of {} at {}", mount.type, mount.source, mount.point);
    for (const auto& [type, why] : kRefused) {
        if (mount.type == type) return bad(fmt::format("{}: {}", what, why), kUseAnother);
    }
    if (mount.source == "mountpoint-s3") {
        return bad(what + ": an object store has no append and no rename", kUseAnother);
    }
    if (mount.type == "nfs" || mount.type == "nfs4") return check_nfs(mount, std::move(what));
    if (mount.type == "tmpfs" || mount.type == "ramfs") {
        return {kProperty, Verdict::kNote, std::move(what),
                "Memory of this machine: nothing outlives it, and no other machine sees it."};
    }
    return {kProperty, Verdict::kGood, std::move(what), {}};
}

}  // namespace kaas::cluster
