#include "bin/log_check.h"

#include "base/result.h"
#include "bin/cli.h"
#include "bin/log_path.h"
#include "storage/check.h"
#include "storage/error.h"

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <fmt/format.h>

#include <cstdio>
#include <string>

namespace kaas::bin {
namespace {

std::string text_of(const storage::Damage& damage, const std::string& file) {
    const auto place = damage.position ? fmt::format(" at byte {}", *damage.position) : "";
    return fmt::format("{}{}: {}\n", file, place, damage.why);
}

std::string json_of(const storage::Damage& damage, const std::string& file) {
    boost::json::object item{{"file", file}};
    if (damage.position) item["position"] = *damage.position;
    item["why"] = damage.why;
    return boost::json::serialize(item) + '\n';
}

storage::Result<storage::CheckSummary> check_one(const std::string& path, bool json,
                                                 std::FILE* out) {
    KAAS_TRY_ASSIGN(named, find_log_path(path));
    return storage::check_partitions(
        *named.volume, named.below, [&](const storage::Damage& damage) {
            const auto file = named.prefix + damage.file;
            const auto line = json ? json_of(damage, file) : text_of(damage, file);
            std::fwrite(line.data(), 1, line.size(), out);
        });
}

}  // namespace

bool check_logs(const LogCheckCommand& command, std::FILE* out, std::string& error) {
    storage::CheckSummary all;
    for (const auto& path : command.paths) {
        const auto one = check_one(path, command.json, out);
        if (!one) {
            error = one.error().context;
            return false;
        }
        all.partitions += one->partitions;
        all.segments += one->segments;
        all.batches += one->batches;
        all.damages += one->damages;
    }
    // One volume of several may have none: they have moved away, or never came.
    if (all.partitions == 0) {
        error = fmt::format("{}: no partition is there or below", fmt::join(command.paths, ", "));
        return false;
    }
    if (!command.json) {
        fmt::print(out, "{} partitions, {} segments, {} batches: {}\n", all.partitions,
                   all.segments, all.batches, all.damages == 0 ? "all is well" : "DAMAGED");
    }
    if (all.damages > 0) error = fmt::format("{} places are damaged", all.damages);
    return all.damages == 0;
}

}  // namespace kaas::bin
