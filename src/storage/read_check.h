#pragma once

#include "base/ids.h"
#include "storage/error.h"
#include "storage/leader_epochs.h"
#include "storage/segment.h"
#include "storage/volume.h"
#include "wire/record_batch.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

// What is looked at before bytes that an earlier life wrote are served (docs/decisions/0025).

namespace kaas::storage {

/// What is wrong with the place of a batch in its segment; empty when nothing is. No checksum
/// covers its offsets and its leader epoch. `expected` is one behind the batch before, or what is
/// known to be no higher than the batch when it is not `in_a_row`.
[[nodiscard]] std::optional<std::string> misplaced(const wire::BatchHeader& header,
                                                   const SegmentFacts& facts,
                                                   const LeaderEpochs& epochs,
                                                   base::Offset expected, bool in_a_row);

/// A run of whole batches that is to be served.
struct Stretch {
    std::uint64_t from;
    std::uint64_t to;
    /// The base offset of its first batch, or no higher than it in a compacted segment; empty when
    /// only the checksum is to say.
    std::optional<base::Offset> base{};
};

/// Reads a stretch of `span` and compares all that can be compared: lengths, checksums, that
/// offsets follow each other, leader epochs. Gives where what is good ends: at the end of the
/// stretch, or before what is damaged or cannot be read. Blocks. Errors, when its first batch is
/// no good: kCorrupt with file and position, the volume's.
[[nodiscard]] Result<Cut> check_stretch(std::shared_ptr<File> file, const SegmentSpan& span,
                                        const Stretch& stretch, const LeaderEpochs& epochs);

/// Where readers met damage in one log, told once each. Thread: guarded by its owner.
class Damages {
public:
    /// More than these are met again and again, and told as often.
    static constexpr std::size_t kMost = 16;

    /// True when it is news.
    bool note(base::Offset at, const std::string& what);
    /// A reader has found good data there.
    void mended(base::Offset at);
    /// True while a log that begins at `log_start` has any.
    [[nodiscard]] bool any(base::Offset log_start) const;

private:
    struct Damage {
        base::Offset at;
        std::string what;
    };
    std::vector<Damage> all_;
};

}  // namespace kaas::storage
