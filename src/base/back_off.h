#pragma once

#include <algorithm>
#include <chrono>

namespace kaas::base {

/// The pauses between attempts that keep failing: each twice as long as the last, up to the
/// longest. Thread: passive.
class BackOff {
public:
    using Pause = std::chrono::milliseconds;

    BackOff(Pause first, Pause longest) : first_(first), longest_(longest), next_(first) {}

    /// How long to wait behind an attempt that was just made.
    [[nodiscard]] Pause next() {
        const auto pause = next_;
        next_ = std::min(next_ * 2, longest_);
        return pause;
    }
    /// What fails from now on is another fault.
    void reset() { next_ = first_; }

private:
    Pause first_;
    Pause longest_;
    Pause next_;
};

}  // namespace kaas::base
