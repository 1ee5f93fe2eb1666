#pragma once

#include "base/ids.h"
#include "storage/log_config.h"
#include "storage/segment.h"
#include "storage/sparse_index.h"

#include <cstdint>
#include <optional>
#include <string>

namespace kaas::storage {

/// A batch about to be appended, as far as its place in a segment needs it.
struct BatchFacts {
    base::Offset base_offset;
    base::Offset last_offset;
    std::uint64_t bytes;
    std::int64_t max_timestamp_ms;
    std::int64_t now_ms;
    /// Set for the marker of an aborted transaction.
    std::optional<AbortedTransaction> aborted{};
};

/// Spreads the rolls of partitions that began together: what `segment.jitter.ms` takes off the age
/// of a segment (Apache `LogConfig.randomSegmentJitter`; ours follows from the names, so that a run
/// can be repeated).
[[nodiscard]] std::int64_t roll_jitter_ms(const LogConfig& config, const std::string& directory,
                                          base::Offset base);

/// Decides, without any I/O, where in its segment each batch goes, what the indexes say of it, and
/// when the segment is full. Appending and recovery follow the same plan, so both write the same
/// indexes. Rules: Apache 4.4 `LogSegment.append`, `LogSegment.shouldRoll`.
class SegmentPlan {
public:
    struct Placement {
        std::uint64_t position = 0;
        std::optional<OffsetEntry> offset_entry;
        std::optional<TimeEntry> time_entry;
        SegmentFacts after;  ///< the segment with the batch in it
    };

    /// `jitter_ms` is taken off `segment.ms`.
    SegmentPlan(base::LeaderEpoch epoch, base::Offset base, std::int64_t now_ms,
                std::int64_t jitter_ms)
        : SegmentPlan(SegmentName{epoch, base}, now_ms, jitter_ms) {}
    SegmentPlan(const SegmentName& name, std::int64_t now_ms, std::int64_t jitter_ms)
        : facts_{.epoch = name.epoch,
                 .base = name.base,
                 .end = name.base,
                 .compaction = name.compaction},
          created_ms_(now_ms),
          jitter_ms_(jitter_ms) {}

    /// True when `batch` belongs into the next segment.
    [[nodiscard]] bool must_roll_before(const BatchFacts& batch, std::int64_t now_ms,
                                        const LogConfig& config) const;
    [[nodiscard]] Placement add(const BatchFacts& batch, const LogConfig& config);
    /// What the time index lacks of the newest time: the entry that closes it when the segment
    /// takes no more.
    [[nodiscard]] std::optional<TimeEntry> time_entry() const;

    [[nodiscard]] const SegmentFacts& facts() const { return facts_; }

private:
    SegmentFacts facts_;
    std::int64_t created_ms_;
    std::int64_t jitter_ms_;
    std::int64_t first_timestamp_ms_ = -1;
    std::uint64_t bytes_since_entry_ = 0;
    std::int64_t offset_entries_ = 0;
    std::int64_t time_entries_ = 0;
    std::int64_t last_entry_timestamp_ms_ = -1;
};

}  // namespace kaas::storage
