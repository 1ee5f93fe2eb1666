#include "storage/slot_recovery.h"

#include "base/assert.h"
#include "base/bytes.h"
#include "base/log.h"
#include "base/result.h"
#include "storage/journal.h"
#include "storage/journal_format.h"
#include "storage/journal_reader.h"
#include "storage/owner.h"
#include "storage/segment.h"
#include "storage/slot_log.h"
#include "storage/volume.h"

#include <fmt/format.h>

#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace kaas::storage {
namespace {

using Pieces = std::span<const JournalImage::Piece>;

constexpr std::uint64_t kPositionMask = (std::uint64_t{1} << kSlotFileShift) - 1;

[[nodiscard]] std::uint64_t position_of(base::Offset place) {
    return static_cast<std::uint64_t>(place.value()) & kPositionMask;
}
[[nodiscard]] std::uint32_t file_of(base::Offset place) {
    return static_cast<std::uint32_t>(static_cast<std::uint64_t>(place.value()) >> kSlotFileShift);
}

/// The journal that the owner of an epoch used; none when it had none.
[[nodiscard]] Result<std::shared_ptr<const JournalImage>> open_journal(LogDir& log_dir,
                                                                       const TakenEpoch& taken) {
    const auto& picture = taken.state.picture;
    const auto* name = picture.if_contains(SlotLog::kJournalKey);
    if (taken.state.released || name == nullptr) return nullptr;
    const auto* owner = picture.if_contains(SlotLog::kOwnerKey);
    if (!name->is_string() || owner == nullptr || !owner->is_object())
        return fail(ErrorCode::kCorrupt, "bad or missing \"owner\" or \"journal\"");
    KAAS_TRY_ASSIGN(who, owner_from_json(owner->get_object()));
    const std::string journal(std::string_view(name->get_string()));
    return log_dir.journal_readers().open(journal, who);
}

/// Puts a piece of the file where it belongs. One that is damaged here may be good in the file, and
/// in front of one that lies beyond its end something is missing: `refuse_loss` looks at what came
/// of it.
[[nodiscard]] Result<void> put_into(std::string& text, const JournalImage::Piece& piece) {
    const auto position = position_of(piece.extent.base);
    const auto bytes = piece.extent.bytes;
    if (!piece.extent.whole || position > text.size()) return {};
    if (text.size() < position + bytes) text.resize(position + bytes);
    const auto into = std::as_writable_bytes(std::span(text)).subspan(position, bytes);
    return read_exactly(*piece.file, piece.extent.position, into, Patience::kMayBlock);
}

/// All that the journal has was durable, and so was what stood before it. So all of it must be in
/// the lines that were read.
[[nodiscard]] Result<void> refuse_loss(Pieces pieces, const EpochState& state,
                                       const std::string& directory) {
    for (const auto& piece : pieces) {
        const auto& extent = piece.extent;
        if (file_of(extent.end) < state.file || extent.end <= slot_place(state.file, state.end))
            continue;
        const auto where =
            fmt::format("{}/{}-{}.jsonl", directory, SlotLog::kKind, file_of(extent.base));
        if (!extent.whole) {
            return fail(ErrorCode::kCorrupt,
                        fmt::format("{} at {}: bytes {} to {} of {} are damaged and nowhere else",
                                    *piece.path, extent.position, position_of(extent.base),
                                    position_of(extent.end), where));
        }
        return fail(
            ErrorCode::kCorrupt,
            fmt::format("{}/{}-{}.jsonl: good up to byte {}, and {} at {} has its bytes {} "
                        "to {}",
                        directory, SlotLog::kKind, state.file, state.end, *piece.path,
                        extent.position, position_of(extent.base), position_of(extent.end)));
    }
    return {};
}

}  // namespace

Result<std::optional<EpochState>> find_slot(LogDir& log_dir, const EpochLogPath& log,
                                            const base::TopicPartition& partition,
                                            std::span<const EpochCandidate> earlier) {
    KAAS_TRY_ASSIGN(taken, take_over(log, earlier));
    if (!taken) return std::nullopt;
    KAAS_ASSERT(taken->volume == &log_dir.volume());
    const auto directory = log.epoch_directory(taken->state.epoch);
    auto image = open_journal(log_dir, *taken);
    if (!image && image.error().code == ErrorCode::kCorrupt)
        return fail(ErrorCode::kCorrupt, directory + ": " + image.error().context);
    if (!image) return std::unexpected(std::move(image).error());
    const JournalKey key{.partition = partition, .epoch = base::LeaderEpoch{taken->state.epoch}};
    const auto pieces = *image != nullptr ? (*image)->of(key) : Pieces();
    if (const auto* gap = *image != nullptr ? (*image)->gap_behind(key) : nullptr) {
        return fail(ErrorCode::kCorrupt,
                    fmt::format("{} at {}: entries are damaged, and nobody can say that none was "
                                "of {}",
                                *gap->path, gap->position, directory));
    }
    if (!pieces.empty()) {
        // Only now, behind the journal: all that stood before its entries is in the file by then,
        // even if the owner still writes.
        const auto amend = [&](std::uint32_t file, std::string& text) -> Result<void> {
            for (const auto& piece : pieces) {
                if (file_of(piece.extent.base) == file) KAAS_TRY(put_into(text, piece));
            }
            return {};
        };
        KAAS_TRY_ASSIGN(again, read_epoch(*taken->volume, log, taken->state.epoch, amend));
        if (!again)
            return fail(ErrorCode::kNotFound, directory + ": its picture is gone: superseded");
        KAAS_TRY(refuse_loss(pieces, *again, directory));
        if (again->lines.size() > taken->state.lines.size()) {
            base::log::info("storage", "{}: {} of its lines came from the journal", directory,
                            again->lines.size() - taken->state.lines.size());
        }
        taken->state = std::move(*again);
    }
    return std::optional(std::move(taken->state));
}

void forget_in_journals(LogDir& log_dir, const base::TopicPartition& partition,
                        base::LeaderEpoch epoch) {
    log_dir.journal_readers().superseded(partition, epoch, log_dir.session());
    if (auto* const journal = log_dir.journal()) journal->superseded(partition, epoch);
}

}  // namespace kaas::storage
