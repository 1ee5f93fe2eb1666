#pragma once

#include "base/ids.h"
#include "base/mutex.h"
#include "storage/error.h"
#include "storage/sparse_index.h"
#include "storage/volume.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace kaas::storage {

/// A transaction whose records readers of committed data skip. An entry of a `.txnindex` file: 34
/// bytes, big endian (Apache `AbortedTxn` version 0).
struct AbortedTransaction {
    static constexpr std::size_t kBytes = 34;
    base::ProducerId producer_id;
    base::Offset first_offset;
    base::Offset last_offset{-1};  ///< of its marker
    /// Where readers of committed data stop once the marker stands: transactions that end later
    /// have begun there or behind it.
    base::Offset last_stable_offset{-1};

    void encode(std::byte* to) const;
    [[nodiscard]] static AbortedTransaction decode(const std::byte* from);

    friend bool operator==(const AbortedTransaction&, const AbortedTransaction&) = default;
};

/// How many aborted transactions ended in a segment, and the checksum of their entries: what a
/// manifest says of an index.
struct AbortedSeal {
    std::uint32_t count = 0;
    std::uint32_t crc = 0;

    void add(const AbortedTransaction& transaction);

    friend bool operator==(const AbortedSeal&, const AbortedSeal&) = default;
};

/// The aborted transactions whose markers stand in one segment, in their order (Apache
/// `TransactionIndex`).
///
/// Not a hint as other indexes are: what it lacks would be served as committed. Apache's format has
/// no checksum, so the manifest has: a file that differs is not believed. While its segment grows,
/// the newest entries are in memory, and what was flushed is in the file. Thread: one writer (the
/// owner of the segment), any readers. No lock is held across I/O.
class AbortedIndex {
public:
    explicit AbortedIndex(IndexOrigin origin) : verified_(origin == IndexOrigin::kNew) {}

    void append(const AbortedTransaction& transaction) KAAS_EXCLUDES(mutex_);
    /// Writes what the file lacks and makes it durable (not its name); without entries there is no
    /// file. `path` is the same at every call.
    [[nodiscard]] Result<void> flush(Volume& volume, const std::string& path,
                                     Syncs syncs = Syncs::kNow) KAAS_EXCLUDES(mutex_);
    [[nodiscard]] bool has_file() const KAAS_EXCLUDES(mutex_);
    /// Behind the last `flush`: readers go to the file from now on.
    void drop_memory() KAAS_EXCLUDES(mutex_);

    /// Adds to `found` those of the first `seal.count` that ended at `from` or later and began
    /// before `until`. True when whatever ends later began at `until` or behind it (Apache
    /// `collectAbortedTxns`). Errors: kWouldBlock; kCorrupt when the file is not what was sealed;
    /// the volume's.
    [[nodiscard]] Result<bool> collect(Volume& volume, const std::string& path,
                                       const AbortedSeal& seal, base::Offset from,
                                       base::Offset until, Patience patience,
                                       std::vector<AbortedTransaction>& found)
        KAAS_EXCLUDES(mutex_);
    /// What was read from the log counts from now on; the file does not.
    void rebuild(std::vector<AbortedTransaction> transactions) KAAS_EXCLUDES(mutex_);

    [[nodiscard]] std::size_t size_in_memory() const KAAS_EXCLUDES(mutex_);

private:
    /// Of a file that an earlier life wrote, before anything of it is believed.
    [[nodiscard]] Result<void> verify(Volume& volume, const std::string& path,
                                      const AbortedSeal& seal, Patience patience)
        KAAS_EXCLUDES(mutex_);

    mutable base::Mutex mutex_;
    std::vector<AbortedTransaction> newest_ KAAS_GUARDED_BY(mutex_);
    std::uint32_t before_newest_ KAAS_GUARDED_BY(mutex_) = 0;  ///< these are in the file alone
    std::uint32_t in_file_ KAAS_GUARDED_BY(mutex_) = 0;
    std::shared_ptr<File> file_ KAAS_GUARDED_BY(mutex_);
    bool verified_ KAAS_GUARDED_BY(mutex_);
};

}  // namespace kaas::storage
