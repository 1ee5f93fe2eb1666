#pragma once

#include "base/ids.h"
#include "storage/aborted_index.h"
#include "storage/file_slice.h"
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

struct Read {
    base::Offset from{0};
    std::uint64_t max_bytes = 0;
    bool at_least_one_batch = true;  ///< give the first batch whole even if it is larger (KIP-74)
    Isolation isolation = Isolation::kReadUncommitted;
    std::int32_t current_leader_epoch = -1;
};

struct ReadResult {
    FileSlice records{};  ///< no file and no length at the end of what may be seen
    /// How much there is to read: at least the length of `records`, more when a batch did not fit
    /// into `max_bytes` whole or a segment ended; then at most `max_bytes`.
    std::uint64_t available_bytes = 0;
    base::Offset high_watermark;
    base::Offset last_stable_offset;
    base::Offset log_start;
    /// Of committed data: whose records to skip, by marker. Some may lie beside what was read.
    std::vector<AbortedTransaction> aborted{};
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
