#include "base/mutex.h"
#include "storage/slot_log.h"
#include "storage/volume.h"

#include <algorithm>
#include <expected>
#include <memory>
#include <optional>
#include <utility>

// How a slot's log comes to be, from what its predecessor left.

namespace kaas::storage {

SlotLog::SlotLog(SlotLogOptions options, const Found& found)
    : options_(std::move(options)),
      must_write_picture_(!found.settled),
      durable_by_name_(found.durable_by_name),
      volume_(options_.log_dir->volume()),
      wants_picture_(must_write_picture_),
      written_epoch_(found.epoch) {}

SlotLog::~SlotLog() = default;

Result<OpenedSlot> SlotLog::open(SlotLogOptions options) {
    auto& log_dir = *options.log_dir;
    // One that is called written is there, or somebody newer has removed it.
    if (std::ranges::none_of(options.earlier, &EpochCandidate::written)) {
        KAAS_TRY(make_directory_if_missing(log_dir.volume(), options.directory));
    }
    const EpochLogPath path{.directory = options.directory, .kind = std::string(kKind)};
    KAAS_TRY_ASSIGN(taken, take_over(path, options.earlier));
    KAAS_TRY(log_dir.session().confirm());
    options.earlier = {};
    Found found;
    OpenedSlot opened;
    if (taken) {
        auto& state = taken->state;
        found = {.epoch = base::LeaderEpoch{state.epoch},
                 .durable_by_name = state.picture_vouched,
                 .settled = state.settled()};
        opened.inherited = InheritedSlot{.picture = std::move(state.picture), .changes = {}};
        opened.inherited->picture.erase(kOwnerKey);
        opened.inherited->picture.erase(kJournalKey);
        for (auto& line : state.lines) {
            if (line.kind == EpochLine::Kind::kChange)
                opened.inherited->changes.push_back(std::move(line.object));
        }
    }
    opened.log = std::shared_ptr<SlotLog>(new SlotLog(std::move(options), found));
    return opened;
}

}  // namespace kaas::storage
