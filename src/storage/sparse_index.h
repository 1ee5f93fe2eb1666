#pragma once

#include "base/bytes.h"
#include "base/mutex.h"
#include "storage/error.h"
#include "storage/volume.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kaas::storage {

/// May a look-up wait for the disk?
enum class Patience {
    kMemoryOnly,  ///< no call on a file at all: a reactor, on a remote volume
    kNever,       ///< only what the page cache holds: a reactor, on a local volume
    kMayBlock,
};

/// Reads as `patience` allows. Errors: kWouldBlock when some of the bytes are not in memory.
/// Requires: the file is known to hold `into.size()` bytes there.
[[nodiscard]] Result<void> read_exactly(File& file, std::uint64_t offset, base::MutableBytes into,
                                        Patience patience);

/// An entry of a `.index` file: 8 bytes, big endian (Apache `OffsetIndex`). The batch at `position`
/// holds the record of that offset as its last one.
struct OffsetEntry {
    static constexpr std::size_t kBytes = 8;
    static constexpr std::string_view kSuffix = ".index";
    std::int32_t relative_offset;
    std::int32_t position;

    void encode(std::byte* to) const;
    [[nodiscard]] static OffsetEntry decode(const std::byte* from);
};

/// An entry of a `.timeindex` file: 12 bytes, big endian (Apache `TimeIndex`). No record up to that
/// offset is newer than `timestamp_ms`.
struct TimeEntry {
    static constexpr std::size_t kBytes = 12;
    static constexpr std::string_view kSuffix = ".timeindex";
    std::int64_t timestamp_ms;
    std::int32_t relative_offset;

    void encode(std::byte* to) const;
    [[nodiscard]] static TimeEntry decode(const std::byte* from);
};

/// Whether an index starts empty in memory, or stands in a file that an earlier life wrote.
enum class IndexOrigin { kNew, kExisting };

/// A sorted run of fixed-size entries: in memory while its segment grows, in its file afterwards.
///
/// Index files are hints: they are rebuilt from the log, and a reader checks what it finds through
/// them. The file is made at the first `flush`. Thread: one writer (the owner of the segment), any
/// readers. No lock is held across I/O.
template <class Entry>
class SparseIndex {
public:
    /// `log_path` is that of the segment's `.log`.
    SparseIndex(std::string log_path, IndexOrigin origin)
        : log_path_(std::move(log_path)), in_memory_(origin == IndexOrigin::kNew) {}

    void append(const Entry& entry) KAAS_EXCLUDES(mutex_) {
        base::MutexLock lock(mutex_);
        entries_.push_back(entry);
    }
    [[nodiscard]] std::optional<Entry> last() const KAAS_EXCLUDES(mutex_) {
        base::MutexLock lock(mutex_);
        return entries_.empty() ? std::nullopt : std::optional(entries_.back());
    }
    [[nodiscard]] std::size_t size_in_memory() const KAAS_EXCLUDES(mutex_) {
        base::MutexLock lock(mutex_);
        return entries_.size();
    }

    /// As a file, once all of it is written; of an existing one, what was found at `open`.
    [[nodiscard]] std::uint64_t bytes() const KAAS_EXCLUDES(mutex_) {
        base::MutexLock lock(mutex_);
        return std::max(entries_.size(), in_file_) * Entry::kBytes;
    }

    [[nodiscard]] bool has_file() const KAAS_EXCLUDES(mutex_) {
        base::MutexLock lock(mutex_);
        return file_ != nullptr;
    }

    /// Writes what the file lacks and makes it durable (not its name). Writer's thread, or one that
    /// stands in for it.
    [[nodiscard]] Result<void> flush(Volume& volume, Syncs syncs = Syncs::kNow)
        KAAS_EXCLUDES(mutex_);
    /// The last `flush`; also makes a file without entries, because Apache's tools look for one.
    [[nodiscard]] Result<void> finish(Volume& volume, Syncs syncs = Syncs::kNow)
        KAAS_EXCLUDES(mutex_);
    /// After `finish`: readers go to the file from now on.
    void drop_memory() KAAS_EXCLUDES(mutex_);
    /// Opens the file of a segment that somebody else, or an earlier life, wrote. An absent file is
    /// an empty index. Nothing to do for one that is in memory.
    [[nodiscard]] Result<void> open(Volume& volume) KAAS_EXCLUDES(mutex_);

    /// The last entry for which `holds` is true; it must be true for a leading run of entries and
    /// false after. Errors: kWouldBlock, and the volume's.
    template <class Predicate>
    [[nodiscard]] Result<std::optional<Entry>> last_where(Predicate holds, Patience patience) const
        KAAS_EXCLUDES(mutex_);

    /// The first entry for which it is false. As `last_where`.
    template <class Predicate>
    [[nodiscard]] Result<std::optional<Entry>> first_not(Predicate holds, Patience patience) const
        KAAS_EXCLUDES(mutex_);
    /// Nobody but this process has written what it says.
    [[nodiscard]] bool in_memory() const KAAS_EXCLUDES(mutex_) {
        base::MutexLock lock(mutex_);
        return in_memory_;
    }

    [[nodiscard]] std::string path() const {
        return log_path_.substr(0, log_path_.rfind('.')).append(Entry::kSuffix);
    }

private:
    /// The entries on both sides of where a predicate turns false.
    struct Border {
        std::optional<Entry> last;
        std::optional<Entry> first_not;
    };
    template <class Predicate>
    [[nodiscard]] Result<Border> border_of(Predicate holds, Patience patience) const
        KAAS_EXCLUDES(mutex_);
    [[nodiscard]] Result<void> write_out(Volume& volume, bool even_if_empty, Syncs syncs)
        KAAS_EXCLUDES(mutex_);

    const std::string log_path_;
    mutable base::Mutex mutex_;
    std::vector<Entry> entries_ KAAS_GUARDED_BY(mutex_);
    std::shared_ptr<File> file_ KAAS_GUARDED_BY(mutex_);
    std::size_t in_file_ KAAS_GUARDED_BY(mutex_) = 0;
    bool opened_ KAAS_GUARDED_BY(mutex_) = false;
    bool in_memory_ KAAS_GUARDED_BY(mutex_);
};

template <class Entry>
template <class Predicate>
Result<std::optional<Entry>> SparseIndex<Entry>::last_where(Predicate holds,
                                                            Patience patience) const {
    KAAS_TRY_ASSIGN(border, border_of(holds, patience));
    return border.last;
}

template <class Entry>
template <class Predicate>
Result<std::optional<Entry>> SparseIndex<Entry>::first_not(Predicate holds,
                                                           Patience patience) const {
    KAAS_TRY_ASSIGN(border, border_of(holds, patience));
    return border.first_not;
}

template <class Entry>
template <class Predicate>
Result<typename SparseIndex<Entry>::Border> SparseIndex<Entry>::border_of(Predicate holds,
                                                                          Patience patience) const {
    Border border;
    std::shared_ptr<File> file;
    std::size_t count = 0;
    {
        base::MutexLock lock(mutex_);
        if (in_memory_) {
            std::size_t low = 0;
            std::size_t high = entries_.size();
            while (low < high) {
                const auto middle = low + (high - low) / 2;
                if (holds(entries_[middle])) {
                    low = middle + 1;
                } else {
                    high = middle;
                }
            }
            if (low > 0) border.last = entries_[low - 1];
            if (low < entries_.size()) border.first_not = entries_[low];
            return border;
        }
        if (!opened_) return fail(ErrorCode::kWouldBlock, path());
        file = file_;
        count = in_file_;
    }
    std::size_t low = 0;
    std::size_t high = count;
    while (low < high) {
        const auto middle = low + (high - low) / 2;
        std::byte bytes[Entry::kBytes];
        KAAS_TRY(read_exactly(*file, middle * Entry::kBytes, bytes, patience));
        const auto entry = Entry::decode(bytes);
        if (holds(entry)) {
            border.last = entry;
            low = middle + 1;
        } else {
            border.first_not = entry;
            high = middle;
        }
    }
    return border;
}

extern template class SparseIndex<OffsetEntry>;
extern template class SparseIndex<TimeEntry>;

using OffsetIndex = SparseIndex<OffsetEntry>;
using TimeIndex = SparseIndex<TimeEntry>;

}  // namespace kaas::storage
