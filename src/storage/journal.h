#pragma once

#include "base/clock.h"
#include "base/executor.h"
#include "base/metrics.h"
#include "base/mutex.h"
#include "storage/epoch_log.h"
#include "storage/journal_format.h"
#include "storage/manifest.h"
#include "storage/metrics_home.h"
#include "storage/room.h"
#include "storage/session_check.h"
#include "storage/volume.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace kaas::storage {

/// Names the journal of one incarnation: `__journals/<broker>.<incarnation>`, an epoch log of that
/// one incarnation (kind "journal", epoch 0) with the journal's files beside it.
///
///     {"log":.., "owner":{..}, "files":[3,4]}    the picture: the files that may hold what is
///                                                needed
///     {"open":5}                                 file 5 may take entries from now on
///     {"trim":[3]}                               nobody needs file 3; it may be gone
struct JournalPath {
    static constexpr std::string_view kParent = "__journals";
    static constexpr std::string_view kKind = "journal";

    std::string name;  ///< `<broker>.<incarnation>`, as manifests say it

    [[nodiscard]] static JournalPath of(const Owner& owner);
    [[nodiscard]] std::string directory() const;
    [[nodiscard]] EpochLogPath epoch_log() const;
    [[nodiscard]] std::string file(std::uint64_t number) const;
};

/// Removes a journal that nobody needs, after a check of the session. Its own log goes first:
/// without it the rest is no journal, wherever a crash leaves this. Absence is fine. Blocks.
[[nodiscard]] Result<void> remove_journal(Volume& volume, const JournalPath& path,
                                          SessionCheck& session);

struct JournalOptions {
    Volume* volume = nullptr;
    SessionCheck* session = nullptr;
    base::Executor* io_pool = nullptr;
    base::Clock* clock = nullptr;
    std::shared_ptr<Room> room{};  ///< of the volume; without one, there is always enough
    Owner owner;
    /// Room for entries; local volumes fill it with zeros ahead. Larger files are trimmed in larger
    /// steps, smaller ones cost more lines.
    std::uint64_t file_bytes = 32 * 1024 * 1024;
    /// No more than so many files wait for their partitions' checkpoints: then batches go to their
    /// segments again, until there is room.
    std::size_t most_files = 16;
    base::metrics::Registry* metrics = nullptr;
    std::string log_dir{};  ///< name for the metrics' label
};

/// The broker journal of a log dir (DESIGN 7): makes small batches of many partitions durable with
/// one write and one sync; their segments follow lazily.
///
/// Owns the directory of its incarnation, from the first use on. Files are made ahead on the I/O
/// pool: a commit that finds no room says so, and its batches go to their segments. A file stays
/// until every log with an entry in it has recorded its segment as synced that far, or has been
/// taken over; then a line says so, the session is checked, and it is used again under the next
/// number, or unlinked. Thread: as each function says.
class Journal : public std::enable_shared_from_this<Journal> {
public:
    [[nodiscard]] static std::shared_ptr<Journal> make(JournalOptions options);
    Journal(const Journal&) = delete;
    Journal& operator=(const Journal&) = delete;
    ~Journal();

    /// True when entries of that many bytes together may be committed now; else sees to it that
    /// there will be room. Thread: the commit cycle's.
    [[nodiscard]] bool reserve(std::uint64_t bytes) KAAS_EXCLUDES(mutex_);
    /// Writes the entries behind each other and syncs them; durable together on return. After an
    /// error the journal takes nothing any more. Requires: `reserve` of `size_of` them. Thread: the
    /// commit cycle's.
    [[nodiscard]] Result<void> commit(std::span<const JournalEntry* const> entries)
        KAAS_EXCLUDES(mutex_);
    [[nodiscard]] static std::uint64_t size_of(const JournalEntry& entry) {
        return kJournalEntryHeader + entry.bytes();
    }

    /// The log of `key` is synced and durably recorded as such up to `end`: its entries below are
    /// not needed any more. Thread: any.
    void recorded(const JournalKey& key, base::Offset end) KAAS_EXCLUDES(mutex_);
    /// Every epoch of the partition below `epoch` is sealed by a durable picture, or the partition
    /// is gone. Thread: any.
    void superseded(const base::TopicPartition& partition, base::LeaderEpoch epoch)
        KAAS_EXCLUDES(mutex_);

    /// Takes nothing any more, waits for what runs on the pool, and removes the journal if nobody
    /// needs it. Thread: one that may block. The first call counts.
    void close() KAAS_EXCLUDES(mutex_);

    /// Files that hold entries. Thread: any.
    [[nodiscard]] std::size_t files() const KAAS_EXCLUDES(mutex_);

private:
    struct JournalFile {
        std::uint64_t number = 0;
        std::shared_ptr<File> file;
        std::uint64_t end = kJournalMagic.size();
        std::uint64_t previous = 0;      ///< the file that took entries before, 0 for none
        std::uint64_t previous_end = 0;  ///< ... and where they end
        /// Which logs have entries here that their manifests do not vouch for, and up to where.
        std::unordered_map<JournalKey, base::Offset> needs;
        bool trimmed = false;  ///< a durable line says so: only its removal has failed
    };

    explicit Journal(JournalOptions options);

    [[nodiscard]] bool wants_room() const KAAS_REQUIRES(mutex_);
    /// A file that takes no entries any more and holds none that is needed.
    [[nodiscard]] std::deque<JournalFile>::iterator trimmable() KAAS_REQUIRES(mutex_);
    /// Goes to the pool if there is something to do there. Without the lock: the pool may be the
    /// caller itself.
    void ask_for_care() KAAS_EXCLUDES(mutex_);

    // On the pool, one at a time.
    void care() KAAS_EXCLUDES(mutex_);
    void make_room() KAAS_EXCLUDES(mutex_);
    /// Goes on where an earlier call had to stop.
    [[nodiscard]] Result<void> begin() KAAS_EXCLUDES(mutex_);
    [[nodiscard]] Result<JournalFile> make_file() KAAS_EXCLUDES(mutex_);
    /// Durable by name, a used one or a new one.
    [[nodiscard]] Result<std::shared_ptr<File>> place_file(const std::string& path);
    [[nodiscard]] Result<std::shared_ptr<File>> fill_file(const std::string& path) const;
    void trim(JournalFile file) KAAS_EXCLUDES(mutex_);
    [[nodiscard]] Result<void> note(const boost::json::object& line) KAAS_EXCLUDES(mutex_);
    [[nodiscard]] boost::json::object picture() const KAAS_EXCLUDES(mutex_);
    [[nodiscard]] Result<void> remove_all();

    const JournalOptions options_;
    const JournalPath path_;
    const MetricsHome registry_;
    base::metrics::Counter& bytes_;
    base::metrics::Counter& syncs_;
    base::metrics::Counter& entries_;
    base::metrics::Gauge& live_files_;

    mutable base::Mutex mutex_;
    base::CondVar idle_;
    /// By number; the last takes entries unless `failed_`.
    std::deque<JournalFile> files_ KAAS_GUARDED_BY(mutex_);
    std::optional<JournalFile> next_ KAAS_GUARDED_BY(mutex_);  ///< made ahead
    bool room_wanted_ KAAS_GUARDED_BY(mutex_) = false;
    bool care_asked_ KAAS_GUARDED_BY(mutex_) = false;
    bool caring_ KAAS_GUARDED_BY(mutex_) = false;
    bool closed_ KAAS_GUARDED_BY(mutex_) = false;
    bool failed_ KAAS_GUARDED_BY(mutex_) = false;  ///< takes no entries any more
    base::Clock::Steady try_again_ KAAS_GUARDED_BY(mutex_){};

    // Of `care`, and of `close` once that has ended.
    std::optional<EpochLog> log_;
    int made_directories_ = 0;  ///< the incarnation's, then the epoch's in it
    std::uint64_t last_number_ = 0;
    std::optional<std::uint64_t> opening_;  ///< told by the line that is being written
    /// Trimmed files that can be used again: full of old entries, which have another number.
    std::vector<JournalFile> spares_;
};

}  // namespace kaas::storage
