#pragma once

#include "base/ids.h"
#include "base/mutex.h"
#include "storage/aborted_index.h"
#include "storage/epoch_log.h"
#include "storage/sparse_index.h"
#include "storage/volume.h"
#include "wire/record_batch.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kaas::storage {

/// Names the files of a segment, for ever: no other segment of its partition is called so.
struct SegmentName {
    base::LeaderEpoch epoch;  ///< that wrote the files
    base::Offset base;
    /// Which compaction of that epoch; 0 for what was appended.
    std::int32_t compaction = 0;

    friend auto operator<=>(const SegmentName&, const SegmentName&) = default;
};

/// Names of a partition's files (DESIGN 7): Apache's own, in the directory of the epoch that wrote
/// them, what it compacted in a directory for each compaction.
struct PartitionPaths {
    explicit PartitionPaths(std::string name)
        : directory(std::make_shared<const std::string>(std::move(name))) {}

    /// `<topic>.<topic id>/<partition>`; shared by all who keep it, for there are thousands.
    std::shared_ptr<const std::string> directory;

    /// The topic's, which holds `directory`.
    [[nodiscard]] std::string topic_directory() const;
    /// The epoch log that says which files count.
    [[nodiscard]] EpochLogPath manifest() const;
    [[nodiscard]] std::string epoch_directory(base::LeaderEpoch epoch) const;
    /// Of the n-th compaction of an epoch; the epoch's own for 0.
    [[nodiscard]] std::string compaction_directory(base::LeaderEpoch epoch,
                                                   std::int32_t compaction) const;
    /// `suffix` with its dot: ".log", ".index", ".timeindex", ".txnindex", ".snapshot".
    [[nodiscard]] std::string file(const SegmentName& name, const char* suffix) const;
};

/// What a manifest says of a segment. Bytes behind `bytes` are never read, whoever wrote them.
struct SegmentFacts {
    base::LeaderEpoch epoch;
    base::Offset base;
    /// One behind its last record, or behind the hole that compaction left there; equal to `base`
    /// when empty.
    base::Offset end;
    std::uint64_t bytes = 0;
    std::int64_t max_timestamp_ms = -1;
    base::Offset max_timestamp_offset{-1};  ///< last offset of the batch that has it
    /// By our own clock, when the last batch came; kept only while no record has a time.
    std::int64_t appended_ms = -1;

    /// See `SegmentName`.
    std::int32_t compaction = 0;
    /// False when compaction left only batches without records: readers who want records need not
    /// see it, and kafkajs would not get past it.
    bool has_records = true;
    /// How much its index of aborted transactions has to hold.
    AbortedSeal aborted{};

    [[nodiscard]] SegmentName name() const { return {epoch, base, compaction}; }

    friend bool operator==(const SegmentFacts&, const SegmentFacts&) = default;
};

/// Which bytes of a file have been found good: a few runs of whole batches, that grow together as
/// they are read. Thread: guarded by its owner.
class CheckedRanges {
public:
    static constexpr std::size_t kMost = 16;

    [[nodiscard]] bool cover(std::uint64_t from, std::uint64_t to) const;
    /// Beyond `kMost` runs the shortest is forgotten, and is looked at again.
    void add(std::uint64_t from, std::uint64_t to);
    void clear() { ranges_.clear(); }

private:
    struct Range {
        std::uint64_t from;
        std::uint64_t to;
    };
    std::vector<Range> ranges_;  ///< ascending, with space between them
};

/// The files of one segment. How far they are good is in `SegmentSpan`, not here.
/// Thread: any. The log file is opened by the first who may block.
class Segment {
public:
    Segment(PartitionPaths paths, const SegmentName& name, IndexOrigin origin);

    /// Makes the log file, which must not exist. Its name is not durable yet.
    [[nodiscard]] Result<void> create(Volume& volume);
    /// The open log file; anew, and with nothing of it checked, once somebody doubts it. Errors:
    /// kWouldBlock when it is not open yet and `patience` is kNever.
    [[nodiscard]] Result<std::shared_ptr<File>> log(Volume& volume, Patience patience)
        KAAS_EXCLUDES(mutex_);
    /// For its owner, who goes on with it after a `rest`.
    [[nodiscard]] Result<std::shared_ptr<File>> open_to_write(Volume& volume) KAAS_EXCLUDES(mutex_);
    /// Lets go of the open log file, all of which is synced, until somebody asks for it.
    void rest() KAAS_EXCLUDES(mutex_);

    /// Whether these bytes may be served without a look at them: what was appended here came from
    /// memory, checked; what an earlier life wrote is checked once.
    [[nodiscard]] bool is_checked(std::uint64_t from, std::uint64_t to) KAAS_EXCLUDES(mutex_);
    void set_checked(std::uint64_t from, std::uint64_t to) KAAS_EXCLUDES(mutex_);

    [[nodiscard]] const SegmentName& name() const { return name_; }
    [[nodiscard]] std::string path() const { return file(".log"); }
    [[nodiscard]] std::string directory() const {
        return paths_.compaction_directory(name_.epoch, name_.compaction);
    }
    [[nodiscard]] OffsetIndex& offsets() KAAS_EXCLUDES(mutex_) { return indexes().offsets; }
    [[nodiscard]] TimeIndex& times() KAAS_EXCLUDES(mutex_) { return indexes().times; }
    [[nodiscard]] AbortedIndex& aborted() KAAS_EXCLUDES(mutex_) { return indexes().aborted; }
    [[nodiscard]] std::string aborted_path() const { return file(".txnindex"); }
    /// False as long as nobody has asked for one.
    [[nodiscard]] bool has_indexes() const KAAS_EXCLUDES(mutex_) {
        base::MutexLock lock(mutex_);
        return indexes_ != nullptr;
    }

private:
    struct Indexes {
        OffsetIndex offsets;
        TimeIndex times;
        AbortedIndex aborted;
    };
    /// Made for who asks first: most segments are never read.
    [[nodiscard]] Indexes& indexes() KAAS_EXCLUDES(mutex_);
    [[nodiscard]] std::string file(const char* suffix) const { return paths_.file(name_, suffix); }

    const PartitionPaths paths_;
    const SegmentName name_;
    const IndexOrigin origin_;
    bool all_checked_ KAAS_GUARDED_BY(mutex_);
    mutable base::Mutex mutex_;
    std::unique_ptr<Indexes> indexes_ KAAS_GUARDED_BY(mutex_);
    std::shared_ptr<File> log_ KAAS_GUARDED_BY(mutex_);
    CheckedRanges checked_ KAAS_GUARDED_BY(mutex_);  ///< when not all is
};

/// Unlinks the files of a segment, those of its indexes and of the producers at its start too, and
/// the directory of the compaction that wrote it; what is gone already is fine. Their names are
/// gone durably once the epoch's directory is synced.
[[nodiscard]] Result<void> remove_segment(Volume& volume, const PartitionPaths& paths,
                                          const SegmentName& name);

/// A segment and how much of it counts.
struct SegmentSpan {
    std::shared_ptr<Segment> segment;
    SegmentFacts facts;
};

/// Where a batch stands in its file.
struct BatchPlace {
    std::uint64_t position;
    std::uint64_t bytes;
    base::Offset base_offset;
    base::Offset last_offset;
    std::int64_t max_timestamp_ms;
    base::LeaderEpoch leader_epoch;

    [[nodiscard]] std::uint64_t end() const { return position + bytes; }
};

/// Walks the batch headers of a file from a position on, reading as little as it can.
class HeaderCursor {
public:
    /// `file`, which is the log of `segment`, and `segment` outlive the cursor.
    HeaderCursor(File& file, const Segment& segment, std::uint64_t position, std::uint64_t end,
                 Patience patience);

    /// The next batch; empty at the end.
    /// Errors: kWouldBlock; kCorrupt for what is no batch; the volume's.
    [[nodiscard]] Result<std::optional<BatchPlace>> next();
    /// The header of the batch that `next` gave last.
    [[nodiscard]] const wire::BatchHeader& header() const { return header_; }

private:
    /// The bytes at `position_`, at least a header.
    [[nodiscard]] Result<base::ByteView> look();

    /// Small batches share a read; a large one costs one read of a header.
    static constexpr std::size_t kBufferBytes = 1024;

    File& file_;
    const Segment& segment_;
    std::uint64_t position_;  ///< of the next batch
    const std::uint64_t end_;
    const Patience patience_;
    std::uint64_t buffer_position_ = 0;
    std::size_t buffered_ = 0;
    wire::BatchHeader header_;
    std::byte buffer_[kBufferBytes];
};

/// The batch of `span` that holds `offset`, or the first one behind it (a compacted log has holes).
/// `hint` is a position known to be a batch's start at or before it. Empty when there is none.
/// Errors: kWouldBlock, kCorrupt, the volume's.
[[nodiscard]] Result<std::optional<BatchPlace>> locate(
    Volume& volume, const SegmentSpan& span, base::Offset offset, Patience patience,
    std::optional<std::uint64_t> hint = std::nullopt);

/// False when the batch that an entry of its offset index promises is not where the entry leads.
/// Errors: kWouldBlock, the volume's.
[[nodiscard]] Result<bool> leads_to(Volume& volume, const SegmentSpan& span,
                                    const OffsetEntry& entry, Patience patience);

/// Where a read ends, and what the next one asks for.
struct Cut {
    std::uint64_t end;
    /// An offset whose batch, or the first one behind it, is at `end`; empty when nobody looked.
    std::optional<base::Offset> next{};
};

/// Where to cut a read of `max_bytes` that starts with the batch at `start`: after a whole batch,
/// and after the first one if that alone is larger and `at_least_one` is asked for. Looks at no
/// more than `max_bytes`. Errors: as `locate`.
[[nodiscard]] Result<Cut> cut_after_whole_batch(Volume& volume, const SegmentSpan& span,
                                                std::uint64_t start, std::uint64_t max_bytes,
                                                bool at_least_one, Patience patience);

}  // namespace kaas::storage
