#pragma once

#include "storage/epoch_log.h"
#include "storage/volume.h"

#include <boost/json/object.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kaas::storage {

/// One line below a picture, without the log's own key.
struct EpochLine {
    enum class Kind { kChange, kSynced, kReleased } kind = Kind::kChange;
    boost::json::object object;
    std::uint64_t offset = 0;  ///< of the line in its file
};

/// What an epoch says: its picture and what happened to it since.
struct EpochState {
    std::int32_t epoch = 0;
    std::uint32_t file = 1;  ///< the file that picture and lines were read from
    std::uint64_t end = 0;   ///< where the last line that counts ends in it
    boost::json::object picture;
    std::vector<EpochLine> lines;

    /// So many leading lines were fsynced for certain; the others were only read, and count only
    /// once they stand in the reader's own durable picture (DESIGN 6). A synced line vouches for
    /// itself: what it says was true when it was written.
    std::size_t vouched_lines = 0;
    bool picture_vouched = false;
    bool released = false;

    /// True when all of this counts as it is, so that a taker may serve from it without writing
    /// anything.
    [[nodiscard]] bool settled() const { return picture_vouched && vouched_lines == lines.size(); }
};

/// One epoch to look at when taking over.
struct EpochCandidate {
    Volume* volume;  ///< the one that this epoch was assigned to
    std::int32_t epoch;
    /// The assignment calls it written: it has a picture, unless somebody newer has removed it
    /// since.
    bool written = false;
};

struct TakenEpoch {
    Volume* volume;
    EpochState state;
};

/// Puts what is known from elsewhere into the text of a file, before it is read.
using AmendText = std::function<Result<void>(std::uint32_t file, std::string& text)>;

/// Reads one epoch, opening every file afresh. Empty when it is void: file 1 is empty or torn.
/// Errors: kNotFound when file 1 is absent (which proves nothing about other hosts), kCorrupt with
/// file and offset, and the volume's own.
[[nodiscard]] Result<std::optional<EpochState>> read_epoch(Volume& volume, const EpochLogPath& path,
                                                           std::int32_t epoch,
                                                           const AmendText& amend = {});

/// The taker's walk: finds the newest picture among `newest_first`, and closes for ever every epoch
/// above it by creating its missing file 1 as void. An owner of a closed epoch that wakes up gets
/// kExists. Empty when no candidate has a picture. Voids are not fsynced: one that a crash undoes
/// has no effect that anybody saw. The caller checks its session before it serves what was found,
/// reads included. Errors: kNotFound when a candidate that is called written is gone or void, or
/// the directory is: somebody newer has been here, ask the controller. kCorrupt with file and
/// offset, and the volume's own. `on_void` hears of each candidate without a picture that was there
/// already: somebody had begun it, or closed it.
[[nodiscard]] Result<std::optional<TakenEpoch>> take_over(
    const EpochLogPath& path, std::span<const EpochCandidate> newest_first,
    const std::function<void(const EpochCandidate&)>& on_void = {});

/// Candidates from `own_epoch` - 1 down to `lowest`, all on one volume; the lowest one is `written`
/// or not.
[[nodiscard]] std::vector<EpochCandidate> candidates_below(Volume& volume, std::int32_t own_epoch,
                                                           std::int32_t lowest,
                                                           bool lowest_written);

/// What the text of one file says, before its lines are interpreted.
struct EpochFile {
    std::vector<boost::json::object> lines;
    std::vector<std::size_t> offsets;  ///< of each line in the text
    std::size_t end = 0;               ///< where the last line that counts ends
};

/// Splits a file into lines, and takes their checksums off. The first line that a crash has torn
/// (its beginning, with nothing or NULs behind it) ends the log: it was never fsynced, and what
/// stands behind it reached the disk before it, if at all. Errors: kCorrupt with `name` and the
/// offset of a line that is no JSON object and not torn, that its checksum denies, or that is torn
/// though it was fsynced, because a line behind it says so, or because it is the picture and lines
/// stand behind it. Never throws.
[[nodiscard]] Result<EpochFile> parse_epoch_file(std::string_view text, std::string_view name);

}  // namespace kaas::storage
