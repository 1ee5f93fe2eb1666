#include "bin/log_path.h"

#include "base/result.h"
#include "bin/local_files.h"
#include "storage/error.h"
#include "storage/posix_volume.h"

#include <string>
#include <utility>

namespace kaas::bin {

storage::Result<LogPath> find_log_path(const std::string& path) {
    // The volume would name it without its slash.
    if (const auto fault = absence(path))
        return storage::fail(storage::ErrorCode::kNotFound, *fault);
    const bool absolute = path.starts_with('/');
    KAAS_TRY_ASSIGN(volume, storage::PosixVolume::open(absolute ? "/" : "."));
    const auto begin = path.find_first_not_of('/');
    std::string below = begin == std::string::npos ? "" : path.substr(begin);
    while (below.ends_with('/')) below.pop_back();
    return LogPath{
        .volume = std::move(volume), .below = std::move(below), .prefix = absolute ? "/" : ""};
}

}  // namespace kaas::bin
