#include "bin/log_dump.h"

#include "bin/cli.h"
#include "bin/local_files.h"
#include "storage/dump.h"
#include "storage/error.h"
#include "storage/posix_volume.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdio>
#include <expected>
#include <string>
#include <string_view>

namespace kaas::bin {
namespace {

storage::Result<storage::DumpSummary> dump_one(const std::string& path,
                                               storage::DumpOptions options, std::FILE* out) {
    // Any path is relative to one of two roots, so that files are named as the user named them.
    const bool absolute = path.starts_with('/');
    // The volume would name it without its slash.
    if (const auto fault = absence(path))
        return storage::fail(storage::ErrorCode::kNotFound, *fault);
    if (absolute) options.name_prefix = "/";
    auto volume = storage::PosixVolume::open(absolute ? "/" : ".");
    if (!volume) return std::unexpected(volume.error());
    const auto begin = path.find_first_not_of('/');
    std::string below = begin == std::string::npos ? "" : path.substr(begin);
    while (below.ends_with('/')) below.pop_back();
    return storage::dump(**volume, below, options, [out](std::string_view line) {
        std::fwrite(line.data(), 1, line.size(), out);
    });
}

}  // namespace

bool dump_logs(const LogDumpCommand& command, std::FILE* out, std::string& error) {
    const storage::DumpOptions options{.form = command.json ? storage::DumpOptions::Form::kJson
                                                            : storage::DumpOptions::Form::kText,
                                       .records = command.records,
                                       .name_prefix = {}};
    std::size_t damages = 0;
    for (const auto& path : command.paths) {
        auto summary = dump_one(path, options, out);
        if (!summary) {
            error = summary.error().context;
            return false;
        }
        damages += summary->damages;
    }
    if (damages > 0) error = fmt::format("{} places are damaged", damages);
    return damages == 0;
}

}  // namespace kaas::bin
