#include "base/mutex.h"
#include "storage/slot_log.h"
#include "storage/slot_recovery.h"
#include "storage/volume.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

// How a slot's log comes to be, from what its predecessor left.

namespace kaas::storage {
namespace {

[[nodiscard]] std::optional<JournalKey> key_in_journal(const SlotLogOptions& options) {
    if (options.log_dir->journal() == nullptr) return std::nullopt;
    return JournalKey{.partition = options.partition, .epoch = options.epoch};
}

}  // namespace

InheritedSlot inherit(const EpochLogPath& log, EpochState state) {
    InheritedSlot slot{.picture = std::move(state.picture),
                       .changes = {},
                       .file = log.file(state.epoch, state.file)};
    slot.picture.erase(SlotLog::kOwnerKey);
    slot.picture.erase(SlotLog::kJournalKey);
    for (auto& line : state.lines) {
        if (line.kind != EpochLine::Kind::kChange) continue;
        slot.changes.push_back(std::move(line.object));
        slot.offsets.push_back(line.offset);
    }
    return slot;
}

SlotLog::SlotLog(SlotLogOptions options, const Found& found)
    : options_(std::move(options)),
      must_write_picture_(!found.settled),
      durable_by_name_(found.durable_by_name),
      journal_key_(key_in_journal(options_)),
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
    KAAS_TRY_ASSIGN(slot, find_slot(log_dir, path, options.partition, options.earlier));
    KAAS_TRY(log_dir.session().confirm());
    options.earlier = {};  // it has what they left
    Found found;
    if (slot) {
        found.durable_by_name = slot->picture_vouched;
        found.settled = slot->settled();
        if (found.settled) found.epoch = base::LeaderEpoch{slot->epoch};
    }
    if (found.settled) forget_in_journals(log_dir, options.partition, options.epoch);
    OpenedSlot opened;
    opened.log = std::shared_ptr<SlotLog>(new SlotLog(std::move(options), found));
    if (slot) opened.inherited = inherit(path, std::move(*slot));
    return opened;
}

}  // namespace kaas::storage
