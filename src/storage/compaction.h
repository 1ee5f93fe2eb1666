#pragma once

#include "base/ids.h"
#include "storage/compaction_filter.h"
#include "storage/compaction_plan.h"
#include "storage/compaction_transactions.h"
#include "storage/error.h"
#include "storage/log_view.h"
#include "storage/offset_map.h"
#include "storage/partition_log.h"
#include "storage/segment.h"
#include "storage/segment_plan.h"
#include "wire/records.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace kaas::storage {

/// With what a compaction works; all that it points to outlives the compaction.
struct CompactionMeans {
    OffsetMap* map = nullptr;
    std::size_t map_bytes_max = std::size_t{128} << 20;
    double map_load_factor = 0.9;
    std::size_t io_buffer_bytes = std::size_t{256} << 10;
    wire::DecodeSite* site = nullptr;
    /// Waits until so many bytes may be read or written; an error ends the compaction.
    std::function<Result<void>(std::uint64_t bytes)> before_io;
};

/// One pass over one log (DESIGN 7): learns the last offset of each key from the dirty part, as far
/// as the map's memory goes, then writes the log up to there anew without what is superseded, group
/// of segments by group. Each group is swapped in by itself, so that a crash or an error leaves
/// every segment old or new, whole.
///
/// Requires: `log.begin_compaction()` said yes, and nobody else compacts the log. Thread: one that
/// may block.
class Compaction {
public:
    Compaction(PartitionLog& log, CompactionSight sight, const Cleanable& cleanable,
               CompactionMeans means);

    /// Errors: kCorrupt with file and position; kClosed when the log ends or what is compacted left
    /// it meanwhile; that of `before_io`; kFenced; the volume's. What was swapped in before counts.
    [[nodiscard]] Result<CompactionCounts> run();

    /// How full the map was.
    [[nodiscard]] double map_utilization() const { return map_utilization_; }

private:
    /// A segment in the making.
    struct Output {
        std::shared_ptr<Segment> segment;
        SegmentPlan plan;
        std::int64_t appended_ms;  ///< when the newest of what it replaces was
        std::uint64_t synced_bytes;
        std::shared_ptr<File> log{};
        std::vector<std::byte> unwritten{};
        AbortedSeal aborted{};
    };

    [[nodiscard]] Result<void> find_aborted();
    [[nodiscard]] std::span<const SegmentSpan> sealed() const { return *sight_.view.sealed; }
    [[nodiscard]] Result<void> learn_keys();
    [[nodiscard]] Result<bool> learn_segment(const SegmentSpan& span, std::size_t keys_max,
                                             TransactionFilter& transactions);
    [[nodiscard]] Result<bool> learn_batch(const wire::BatchView& batch, std::size_t keys_max,
                                           TransactionFilter& transactions);
    [[nodiscard]] Result<std::vector<SegmentGroup>> groups();
    [[nodiscard]] Result<void> rewrite(std::span<const SegmentSpan> group, bool is_last,
                                       CompactionFilter& filter, TransactionFilter& transactions);
    [[nodiscard]] Result<void> copy(const SegmentSpan& from, CompactionFilter& filter,
                                    TransactionFilter& transactions, Output& output);
    /// Gives the batches in `unwritten` their places and writes them.
    [[nodiscard]] Result<void> write_out(Output& output);
    [[nodiscard]] Result<void> finish(Output& output);

    PartitionLog& log_;
    Volume& volume_;
    const CompactionSight sight_;
    const Cleanable cleanable_;
    const CompactionMeans means_;
    const std::int64_t now_ms_;
    std::vector<AbortedTransaction> aborted_;
    base::Offset mapped_to_;
    double map_utilization_ = 0;
};

}  // namespace kaas::storage
