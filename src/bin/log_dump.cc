#include "bin/log_dump.h"

#include "base/result.h"
#include "bin/cli.h"
#include "bin/log_path.h"
#include "storage/dump.h"
#include "storage/error.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>

namespace kaas::bin {
namespace {

storage::Result<storage::DumpSummary> dump_one(const std::string& path,
                                               storage::DumpOptions options, std::FILE* out) {
    KAAS_TRY_ASSIGN(named, find_log_path(path));
    options.name_prefix = named.prefix;
    return storage::dump(*named.volume, named.below, options, [out](std::string_view line) {
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
