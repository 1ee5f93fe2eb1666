#pragma once

#include "base/clock.h"

#include <algorithm>
#include <chrono>
#include <optional>

namespace kaas::cluster {

/// How long a release may wait for its logs: a share of its own, and while its table closes, what
/// is left of one for all. Thread: guarded by its table.
class ReleasePatience {
public:
    ReleasePatience(const base::Clock& clock, std::chrono::milliseconds share)
        : clock_(clock), share_(share) {}

    /// The table closes within `patience`. Half of it stays for those behind them in the queue,
    /// whose volume may be well.
    void close_within(std::chrono::milliseconds patience) {
        by_ = clock_.now() + std::min(patience / 2, share_);
    }

    [[nodiscard]] std::chrono::milliseconds left() const {
        if (!by_) return share_;
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(*by_ - clock_.now());
        return std::max(left, std::chrono::milliseconds(0));
    }

private:
    const base::Clock& clock_;
    const std::chrono::milliseconds share_;
    std::optional<base::Clock::Steady> by_;
};

}  // namespace kaas::cluster
