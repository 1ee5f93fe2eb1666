#include "storage/check.h"
#include "storage/epoch_log.h"
#include "storage/epoch_reader.h"
#include "storage/error.h"
#include "storage/journal.h"
#include "storage/journal_reader.h"
#include "storage/slot_log.h"
#include "storage/slot_recovery.h"
#include "storage/volume.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

// What a volume has beside its partitions.

namespace kaas::storage {

namespace {

struct Newest {
    bool is_there = false;            ///< any epoch
    std::optional<EpochState> state;  ///< of the newest that has a picture
};

[[nodiscard]] Result<Newest> read_newest(Volume& volume, const EpochLogPath& path) {
    Newest newest;
    const auto names = volume.list(path.directory);
    std::vector<std::int32_t> epochs;
    if (names) {
        for (const auto& name : *names) {
            if (const auto epoch = parse_epoch_name(name)) epochs.push_back(*epoch);
        }
    }
    newest.is_there = !epochs.empty();
    std::ranges::sort(epochs, std::greater{});
    for (const auto epoch : epochs) {
        auto state = read_epoch(volume, path, epoch);
        if (!state && state.error().code == ErrorCode::kNotFound) continue;
        if (!state) return fail(state.error().code, state.error().context);
        newest.state = std::move(*state);
        if (newest.state) break;
    }
    return newest;
}

}  // namespace

std::size_t check_epoch_log(Volume& volume, const EpochLogPath& path, const ReportDamage& report) {
    const auto newest = read_newest(volume, path);
    if (newest && (newest->state || !newest->is_there)) return 0;
    report({path.directory, std::nullopt,
            newest ? "none of its epochs has a picture" : newest.error().context});
    return 1;
}

CheckSummary check_slots(Volume& volume, const std::string& parent, const CheckSlot& check,
                         const ReportDamage& report) {
    CheckSummary summary;
    const auto damage = [&](const Damage& found) {
        ++summary.damages;
        report(found);
    };
    const auto names = volume.list(parent);
    if (!names) return summary;
    for (const auto& name : *names) {
        const EpochLogPath path{.directory = parent + "/" + name,
                                .kind = std::string(SlotLog::kKind)};
        auto newest = read_newest(volume, path);
        if (!newest) {
            damage({path.directory, std::nullopt, newest.error().context});
            continue;
        }
        // A taker of a slot that was never written leaves epochs without a picture.
        if (!newest->state) continue;
        ++summary.slots;
        if (const auto found = check(inherit(path, std::move(*newest->state)))) damage(*found);
    }
    return summary;
}

std::size_t check_journals(Volume& volume, const ReportDamage& report) {
    const auto names = volume.list(std::string(JournalPath::kParent));
    if (!names) return 0;
    std::size_t damages = 0;
    const auto damage = [&](std::string file, std::optional<std::uint64_t> position,
                            std::string why) {
        ++damages;
        report({std::move(file), position, std::move(why)});
    };
    for (const auto& name : *names) {
        const JournalPath path{name};
        // One that is half removed holds nothing, and reading it as a taker does would close it.
        const auto log = read_epoch(volume, path.epoch_log(), 0);
        if (!log && log.error().code == ErrorCode::kNotFound) continue;
        const auto image = JournalImage::read(volume, name);
        if (!image) {
            damage(path.directory(), std::nullopt, image.error().context);
            continue;
        }
        (*image)->for_each([&](const JournalKey& key) {
            for (const auto& piece : (*image)->of(key)) {
                if (piece.extent.whole) continue;
                damage(*piece.path, piece.extent.position, "an entry's batches are damaged");
            }
        });
        for (const auto& gap : (*image)->gaps())
            damage(*gap.path, gap.position, "entries are damaged, and nobody can say whose");
    }
    return damages;
}

}  // namespace kaas::storage
