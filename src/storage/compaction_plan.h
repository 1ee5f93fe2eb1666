#pragma once

#include "base/ids.h"
#include "storage/log_config.h"
#include "storage/log_view.h"
#include "storage/segment.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace kaas::storage {

/// How much of a log there is to compact.
struct Cleanable {
    base::Offset first_dirty{0};        ///< everything below was compacted before
    base::Offset first_uncleanable{0};  ///< where a segment begins that must stay as it is
    std::uint64_t clean_bytes = 0;
    std::uint64_t dirty_bytes = 0;  ///< of whole segments between the two
    std::size_t sealed_dirty = 0;   ///< index of the first sealed segment with dirty records
    std::size_t sealed_end = 0;     ///< one behind the last that may be touched

    /// Share of dirty bytes: `min.cleanable.dirty.ratio` asks for it.
    [[nodiscard]] double ratio() const {
        const auto total = clean_bytes + dirty_bytes;
        return total == 0 ? 0 : static_cast<double>(dirty_bytes) / static_cast<double>(total);
    }
};

/// What may be compacted now: sealed segments below the last stable offset whose records are all
/// older than `min.compaction.lag.ms`; what is appended to is never touched. `clean_to` is how far
/// the log was compacted before. Source: Apache 4.4 `LogCleanerManager.cleanableOffsets`,
/// `calculateCleanableBytes`.
[[nodiscard]] Cleanable find_cleanable(const LogView& view, base::Offset clean_to,
                                       const LogConfig& config, std::int64_t now_ms);

/// A run of segments that become one: [first, last) of what was given.
struct SegmentGroup {
    std::size_t first;
    std::size_t last;
};

/// What of a segment decides with which others it can be joined.
struct SegmentExtent {
    base::Offset base;
    base::Offset last_offset;
    std::uint64_t bytes;
    std::uint64_t offset_index_bytes;
    std::uint64_t time_index_bytes;
};

/// Joins neighbours as long as one segment could hold them even if nothing of them went. Source:
/// Apache 4.4 `Cleaner.groupSegmentsBySize`.
[[nodiscard]] std::vector<SegmentGroup> group_segments(std::span<const SegmentExtent> segments,
                                                       const LogConfig& config);

}  // namespace kaas::storage
