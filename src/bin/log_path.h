#pragma once

#include "storage/error.h"
#include "storage/volume.h"

#include <memory>
#include <string>

namespace kaas::bin {

/// A path that a user named, on a volume: relative to one of two roots, so that files are called as
/// the user called them.
struct LogPath {
    std::unique_ptr<storage::Volume> volume;
    std::string below;   ///< the path on the volume
    std::string prefix;  ///< stands before a path of the volume to make it the user's
};

/// Errors: kNotFound when there is nothing at `path`; the volume's.
[[nodiscard]] storage::Result<LogPath> find_log_path(const std::string& path);

}  // namespace kaas::bin
