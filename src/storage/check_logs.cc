#include "storage/check.h"
#include "storage/epoch_log.h"
#include "storage/epoch_reader.h"
#include "storage/error.h"
#include "storage/journal.h"
#include "storage/journal_reader.h"
#include "storage/slot_log.h"
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

enum class Pictures { kOptional, kRequired };

[[nodiscard]] std::size_t check_newest(Volume& volume, const EpochLogPath& path,
                                       const ReportDamage& report, Pictures pictures) {
    const auto names = volume.list(path.directory);
    std::vector<std::int32_t> epochs;
    if (names) {
        for (const auto& name : *names) {
            if (const auto epoch = parse_epoch_name(name)) epochs.push_back(*epoch);
        }
    }
    std::ranges::sort(epochs, std::greater{});
    for (const auto epoch : epochs) {
        const auto state = read_epoch(volume, path, epoch);
        if (state && *state) return 0;
        if (state || state.error().code == ErrorCode::kNotFound) continue;
        report({path.epoch_directory(epoch), std::nullopt, state.error().context});
        return 1;
    }
    if (epochs.empty() || pictures == Pictures::kOptional) return 0;
    report({path.directory, std::nullopt, "none of its epochs has a picture"});
    return 1;
}

}  // namespace

std::size_t check_epoch_log(Volume& volume, const EpochLogPath& path, const ReportDamage& report) {
    return check_newest(volume, path, report, Pictures::kRequired);
}

std::size_t check_slots(Volume& volume, const std::string& parent, const ReportDamage& report) {
    const auto names = volume.list(parent);
    if (!names) return 0;
    std::size_t damages = 0;
    for (const auto& name : *names) {
        const EpochLogPath path{.directory = parent + "/" + name,
                                .kind = std::string(SlotLog::kKind)};
        // A taker of a slot that was never written leaves epochs without a picture.
        damages += check_newest(volume, path, report, Pictures::kOptional);
    }
    return damages;
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
