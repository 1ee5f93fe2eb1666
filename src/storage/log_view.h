#pragma once

#include "base/ids.h"
#include "storage/segment.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace kaas::storage {

enum class Isolation { kReadUncommitted, kReadCommitted };

/// What a reader may see of a log, taken at one moment: immutable, cheap to copy, valid as long as
/// it is held (files stay readable for it, also when they are unlinked).
struct LogView {
    /// All segments but the last, by base offset.
    std::shared_ptr<const std::vector<SegmentSpan>> sealed;
    /// The last one, up to the high watermark; without a segment when nothing was written.
    SegmentSpan last{};
    base::Offset log_start{0};
    /// Everything below is written, synced as `flush.messages` asks, and checked; nothing above may
    /// be seen.
    base::Offset high_watermark{0};
    base::Offset last_stable_offset{0};

    /// Where what a reader may see ends.
    [[nodiscard]] base::Offset visible_end(Isolation isolation) const {
        return isolation == Isolation::kReadCommitted ? last_stable_offset : high_watermark;
    }
    /// The segment that holds `offset`, or the first behind it; null at the end.
    [[nodiscard]] const SegmentSpan* span_of(base::Offset offset) const;
    /// The segment after `span`; null at the end.
    [[nodiscard]] const SegmentSpan* next(const SegmentSpan& span) const;
    [[nodiscard]] std::uint64_t bytes() const;
};

/// Remembers where batches begin, so that whoever reads at the end of the log, or goes on where a
/// read ended, finds the place without a look into a file. Small and of fixed size. Thread: guarded
/// by its owner.
class PlaceMemory {
public:
    static constexpr std::size_t kPlaces = 64;

    /// Who looks for `offset` in `segment` finds the first batch that he wants at `position`.
    void remember(base::Offset offset, const SegmentName& segment, std::uint64_t position);
    /// The position that was remembered for `offset`.
    [[nodiscard]] std::optional<std::uint64_t> find(base::Offset offset,
                                                    const SegmentName& segment) const;

private:
    struct Place {
        base::Offset offset;
        SegmentName segment;
        std::uint64_t position;
    };
    std::vector<Place> places_;  ///< a ring, once full
    std::size_t next_ = 0;
};

}  // namespace kaas::storage
