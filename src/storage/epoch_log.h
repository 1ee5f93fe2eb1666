#pragma once

#include "storage/session_check.h"
#include "storage/volume.h"

#include <boost/json/object.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kaas::storage {

/// The name of an epoch's directory: eight hexadecimal digits.
[[nodiscard]] std::string epoch_name(std::int32_t epoch);
/// Empty when no epoch is called so.
[[nodiscard]] std::optional<std::int32_t> parse_epoch_name(std::string_view name);

/// Names the files of one epoch log: `<directory>/<epoch:08x>/<kind>-<n>.jsonl`. The directory is
/// made by whoever makes the thing that the log belongs to; the log itself makes epochs in it, one
/// level, never a path, so that nobody re-makes what was deleted.
struct EpochLogPath {
    std::string directory;
    std::string kind;  ///< "manifest", "control", ...

    [[nodiscard]] std::string epoch_directory(std::int32_t epoch) const;
    [[nodiscard]] std::string file(std::int32_t epoch, std::uint32_t number) const;
};

/// What the log itself says in a line. Callers leave this key alone, and that of the checksum which
/// each line ends with (`line_checksum.h`).
inline constexpr std::string_view kLogKey = "log";

struct EpochLogOptions {
    /// kMade: the caller has made the epoch's directory exclusively (by `make_directory`) and put
    /// files there.
    enum class Directory { kMake, kMade } directory = Directory::kMake;
    /// kLater: `create` syncs nothing, and nothing may be done with the log before the caller has.
    Syncs syncs = Syncs::kNow;
    /// A small picture is not rewritten for every handful of changes: below this, changes never
    /// outweigh it.
    std::uint64_t roll_floor_bytes = 64 * 1024;
};

/// The owner's side of one epoch of an epoch log (DESIGN 6): JSON lines in a directory that nobody
/// else ever writes in. `epoch_reader.h` has the taker's side.
///
///     {"log":{"kind":"manifest","epoch":7,"file":1},"owner":...}  the picture, as the caller gave
///     it
///     {"roll":...}                            a change, as the caller gave it
///     {"log":{"change":4096},"drop":...}      the first change behind an fsync
///     {"log":{"synced":5120},"up_to":4711}    all changes above were fsynced when this was written
///     {"log":{"next":5120},"file":2}          file 1 only: the picture now stands in file 2
///     {"log":{"released":5120}}               all above was fsynced; nothing will follow
///
/// The number says up to which byte of this file all was fsynced when the line was written. Nothing
/// above that byte may be missing; what stands behind it, a crash may have lost in any order.
///
/// Durability: a line counts once a `sync` that began after its `append` has returned. A picture
/// counts when `create` or `roll` returns. Errors: the first failed or short write or fsync ends
/// the epoch for its owner; that error then answers every later call. Lines that `append` refuses
/// with kUnwritable were not written, and end nothing. Thread: passive; one call at a time, on a
/// thread that may block.
class EpochLog {
public:
    /// Opens the epoch: makes its directory (unless the caller did) and file 1, both exclusively,
    /// and makes the picture durable with every name that leads to it below `path.directory`'s own.
    /// The picture is the commit point: all that it names must have been fsynced before, file and
    /// directory. Errors: kExists when the epoch was closed by a taker (ask for a new one),
    /// kNotFound when `path.directory` is gone. After any error, the epoch is lost to the caller.
    [[nodiscard]] static Result<EpochLog> create(Volume& volume, EpochLogPath path,
                                                 std::int32_t epoch,
                                                 const boost::json::object& picture,
                                                 EpochLogOptions options = {});

    EpochLog(EpochLog&&) = default;
    EpochLog& operator=(EpochLog&&) = default;

    /// Writes the changes as lines, in one write, without a sync.
    [[nodiscard]] Result<void> append(std::span<const boost::json::object> changes);
    [[nodiscard]] Result<void> append(const boost::json::object& change) {
        return append({&change, 1});
    }
    /// The same for changes that are text already, each of one JSON object without a newline. What
    /// was written is added to `written`, when given. Errors: kUnwritable for what would not read
    /// back as such an object.
    [[nodiscard]] Result<void> append_text(std::span<const std::string> changes,
                                           std::string* written = nullptr);
    /// Makes durable what was appended; free when there is nothing.
    [[nodiscard]] Result<void> sync();

    /// A sync that somebody else makes, while the log may go on meanwhile.
    struct Unsynced {
        std::shared_ptr<File> file;
        std::uint32_t number = 0;  ///< of the file
        std::uint64_t end = 0;     ///< up to where it covers what was appended
    };
    /// What a sync begun now covers; no file when changes want none.
    [[nodiscard]] Unsynced unsynced() const;
    /// What one begun now covers, hints too.
    [[nodiscard]] Unsynced everything() const { return {file_, number_, length_}; }
    /// Tells what became of it. Its error ends the epoch.
    [[nodiscard]] Result<void> note_synced(const Unsynced& what, Result<void> outcome);

    /// Says in the log that all above was fsynced (and whatever else the caller's `facts` say), so
    /// that a taker need not doubt it. Syncs unsynced changes first. The line itself is a hint,
    /// true when written and cheap to lose: it is not synced here, nor before the next one like it.
    [[nodiscard]] Result<void> append_synced(const boost::json::object& facts = {},
                                             std::string* written = nullptr);
    /// True while something durable is not yet vouched for by a line: an idle owner then writes
    /// one.
    [[nodiscard]] bool wants_synced_line() const {
        return unvouched_ && !has_unsynced_changes() && !ended();
    }

    /// Syncs what is unsynced, then appends and syncs the last line. The log takes nothing
    /// afterwards (kClosed). With kLater it syncs nothing: the caller has made durable all that was
    /// appended, and the release stands once he has made the last line durable, too.
    [[nodiscard]] Result<void> release(const boost::json::object& facts = {},
                                       Syncs syncs = Syncs::kNow);

    /// Lets go of its file until the next line, if all of it is durable: an idle log of thousands
    /// needs none.
    void rest();

    /// True when the changes outweigh the picture.
    [[nodiscard]] bool wants_roll() const;
    /// Starts the next file with a fresh picture, which must hold every change appended so far; on
    /// return the picture is durable, and with it all that was unsynced.
    [[nodiscard]] Result<void> roll(const boost::json::object& picture);
    /// Unlinks the files between the first and the current one, after a check of the session (rule
    /// 7). What could not be removed stays listed for the next call; it harms nobody.
    [[nodiscard]] Result<void> remove_superseded(SessionCheck& session);

    [[nodiscard]] std::int32_t epoch() const { return epoch_; }
    [[nodiscard]] const EpochLogPath& path() const { return path_; }
    /// Number and length of the file that takes changes.
    [[nodiscard]] std::uint32_t file() const { return number_; }
    [[nodiscard]] std::uint64_t length() const { return length_; }
    [[nodiscard]] bool has_unsynced() const { return fsynced_ < length_; }
    /// The error that ended the epoch, or kClosed after a release; null while the log is good.
    [[nodiscard]] const std::unique_ptr<const Error>& ended_by() const { return ended_by_; }

private:
    struct Started {
        std::unique_ptr<File> file;
        std::uint64_t length;
    };

    EpochLog(Volume& volume, EpochLogPath path, std::int32_t epoch, EpochLogOptions options);

    [[nodiscard]] bool ended() const { return ended_by_ != nullptr; }
    /// Something that a hint must not vouch for.
    [[nodiscard]] bool has_unsynced_changes() const { return changes_end_ > fsynced_; }
    /// Opens the file again after a `rest`.
    [[nodiscard]] Result<void> wake();
    /// Remembers the first error for ever.
    [[nodiscard]] Result<void> end_on_error(Result<void> result);
    [[nodiscard]] Result<void> still_good() const;
    /// Writes lines of which the first says how much was fsynced, if there is news of that.
    [[nodiscard]] Result<void> write_lines(const std::string& lines);
    [[nodiscard]] Result<void> write_changes(const std::string& lines);
    /// Creates file `number` with a picture and makes both durable.
    [[nodiscard]] Result<Started> start_file(std::uint32_t number, const std::string& line,
                                             Syncs syncs);
    [[nodiscard]] Result<std::string> picture_line(std::uint32_t number,
                                                   const boost::json::object& picture) const;
    [[nodiscard]] Result<void> name_next_file(std::uint32_t number);

    Volume* volume_;
    EpochLogPath path_;
    std::int32_t epoch_;
    EpochLogOptions options_;

    std::shared_ptr<File> file_;  ///< none while it rests
    std::uint32_t number_ = 1;
    std::uint64_t length_ = 0;
    std::uint64_t first_file_length_ = 0;  ///< meaningful once number_ > 1
    std::uint64_t picture_bytes_ = 0;
    std::uint64_t changes_end_ = 0;  ///< where the last change of the current file ends
    std::uint64_t fsynced_ = 0;      ///< bytes of the current file
    std::uint64_t told_ = 0;         ///< ... as far as a line says so
    bool unvouched_ = true;
    std::vector<std::uint32_t> superseded_;
    std::unique_ptr<const Error> ended_by_;
};

/// Removes an old epoch with everything in its directory; file 1 goes last, so that the epoch stays
/// closed as long as anything is left of it. Goes on where an earlier attempt stopped. Requires:
/// the caller owns the newest durable picture, and nothing in the directory is live: no picture
/// names a file there and no reader has one open. The session is checked before the first unlink
/// (kFenced, kIo). Any error leaves the rest for a later call.
[[nodiscard]] Result<void> remove_epoch(Volume& volume, const EpochLogPath& path,
                                        std::int32_t epoch, SessionCheck& session);

}  // namespace kaas::storage
