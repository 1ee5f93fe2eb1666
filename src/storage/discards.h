#pragma once

#include "base/clock.h"
#include "storage/segment.h"

#include <chrono>
#include <span>
#include <vector>

namespace kaas::storage {

/// Segments that have left a log, and when the files of each may go. Passive, its owner guards it.
class Discards {
public:
    /// Twice is as good as once; the later time counts.
    void add(std::span<const SegmentName> names, base::Clock::Steady due);
    /// Those whose time has come; they stay until `remove`.
    [[nodiscard]] std::vector<SegmentName> due(base::Clock::Steady now) const;
    void remove(std::span<const SegmentName> names);
    /// The earliest time at which something is due; the end of time when nothing waits.
    [[nodiscard]] base::Clock::Steady next_due() const;

private:
    struct Waiting {
        SegmentName name;
        base::Clock::Steady due;
    };
    std::vector<Waiting> waiting_;
};

}  // namespace kaas::storage
