#include "bin/log_check.h"

#include "base/result.h"
#include "bin/cli.h"
#include "bin/log_path.h"
#include "bin/slot_check.h"
#include "catalog/control_log.h"
#include "catalog/slot.h"
#include "cluster/identity.h"
#include "storage/check.h"
#include "storage/error.h"
#include "storage/posix_volume.h"

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <fmt/format.h>

#include <cstdio>
#include <optional>
#include <string>

namespace kaas::bin {
namespace {

std::string text_of(const storage::Damage& damage, const std::string& file) {
    if (damage.why.starts_with(file)) return damage.why + '\n';
    const auto place = damage.position ? fmt::format(" at byte {}", *damage.position) : "";
    return fmt::format("{}{}: {}\n", file, place, damage.why);
}

std::string json_of(const storage::Damage& damage, const std::string& file) {
    boost::json::object item{{"file", file}};
    if (damage.position) item["position"] = *damage.position;
    item["why"] = damage.why;
    return boost::json::serialize(item) + '\n';
}

/// What was looked at.
struct Checked {
    storage::CheckSummary found;
    bool any_root = false;  ///< of a volume
};

/// What stands at the root of a volume, if `path` is one: its sign, the control log, coordinators'
/// slots, journals.
void check_root(const std::string& path, const storage::ReportDamage& report, Checked& checked) {
    auto volume = storage::PosixVolume::open(path);
    if (!volume) return;  // one file, or nothing: who looks for partitions says so
    auto& found = checked.found;
    const auto sign = cluster::read_identity(**volume);
    checked.any_root |= sign && *sign;
    if (!sign) {
        report({"kaas.json", std::nullopt, sign.error().context});
        ++found.damages;
    }
    found.damages += storage::check_epoch_log(**volume, catalog::control_path(), report);
    for (const auto kind : catalog::kSlotKinds) {
        const auto check = [kind](const auto& slot) { return check_slot(kind, slot); };
        found += storage::check_slots(**volume, catalog::slots_directory(kind), check, report);
    }
    found.damages += storage::check_journals(**volume, report);
}

storage::Result<void> check_one(const std::string& path, bool json, std::FILE* out,
                                Checked& checked) {
    KAAS_TRY_ASSIGN(named, find_log_path(path));
    const auto show_below = [&](const std::string& root) {
        return [=](const storage::Damage& damage) {
            const auto file = root + damage.file;
            const auto line = json ? json_of(damage, file) : text_of(damage, file);
            std::fwrite(line.data(), 1, line.size(), out);
        };
    };
    check_root(path, show_below(path.ends_with('/') ? path : path + "/"), checked);
    KAAS_TRY_ASSIGN(
        found, storage::check_partitions(*named.volume, named.below, show_below(named.prefix)));
    checked.found += found;
    return {};
}

}  // namespace

bool check_logs(const LogCheckCommand& command, std::FILE* out, std::string& error) {
    Checked checked;
    for (const auto& path : command.paths) {
        const auto done = check_one(path, command.json, out, checked);
        if (!done) {
            error = done.error().context;
            return false;
        }
    }
    const auto& all = checked.found;
    // A volume may have none: they have moved away, or never came.
    if (all.partitions == 0 && all.damages == 0 && !checked.any_root) {
        error = fmt::format("{}: no partition is there or below", fmt::join(command.paths, ", "));
        return false;
    }
    if (!command.json) {
        fmt::print(out, "{} partitions, {} segments, {} batches, {} slots: {}\n", all.partitions,
                   all.segments, all.batches, all.slots,
                   all.damages == 0 ? "all is well" : "DAMAGED");
    }
    if (all.damages > 0) error = fmt::format("{} places are damaged", all.damages);
    return all.damages == 0;
}

}  // namespace kaas::bin
