#pragma once

#include "base/ids.h"
#include "storage/epoch_log.h"
#include "storage/epoch_reader.h"
#include "storage/error.h"
#include "storage/log_dir.h"

#include <cstdint>
#include <optional>
#include <span>

// What a taker of a coordinator's slot finds: the newest epoch's lines, in its file or in the
// broker journal of its owner.

namespace kaas::storage {

struct InheritedSlot;

/// Which bytes of a slot's file an entry of a journal is: it tells them as offsets.
inline constexpr int kSlotFileShift = 40;
[[nodiscard]] constexpr base::Offset slot_place(std::uint32_t file, std::uint64_t position) {
    return base::Offset{
        static_cast<std::int64_t>((std::uint64_t{file} << kSlotFileShift) + position)};
}
/// Beyond, a file keeps its lines to itself.
[[nodiscard]] constexpr bool has_slot_place(std::uint32_t file, std::uint64_t end) {
    return file < (std::uint32_t{1} << 22) && end < (std::uint64_t{1} << kSlotFileShift);
}

/// Walks down to the newest picture of the slot that `log` names and closes what is above it
/// (`take_over`); lines that only the journal of that epoch's owner has are put where they belong;
/// they do not count as they are (`EpochState::settled`), as no line vouches for them. Empty when
/// the slot was never written. Requires: all of `earlier` on the log dir's volume. The caller
/// checks the session before anything is served. Blocks. Errors: as `take_over`; kCorrupt also when
/// lines were durable in a journal and are damaged there, and nowhere else.
[[nodiscard]] Result<std::optional<EpochState>> find_slot(LogDir& log_dir, const EpochLogPath& log,
                                                          const base::TopicPartition& partition,
                                                          std::span<const EpochCandidate> earlier);

/// What the slot's state machine gets of it.
[[nodiscard]] InheritedSlot inherit(const EpochLogPath& log, EpochState state);

/// Every epoch of the slot below `epoch` is sealed by a durable picture, or needs no journal: none
/// keeps anything for it any more. Blocks.
void forget_in_journals(LogDir& log_dir, const base::TopicPartition& partition,
                        base::LeaderEpoch epoch);

}  // namespace kaas::storage
