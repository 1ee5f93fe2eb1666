#pragma once

#include "base/clock.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace kaas::telemetry {

/// Watches the counters that threads bump once a second. One that stands still means that its
/// thread is wedged; nothing else does (a hung volume must not restart a pod). Thread: the health
/// thread's, after the last `watch`.
class TickWatch {
public:
    static constexpr std::chrono::seconds kStaleAfter{5};

    explicit TickWatch(base::Clock& clock = base::Clock::system()) : clock_(clock) {}

    /// `ticks` may be called from any thread and does not block.
    void watch(std::string thread, std::function<std::uint64_t()> ticks);
    /// The threads whose counter was the same for `kStaleAfter`, as far as earlier calls have seen.
    [[nodiscard]] std::vector<std::string> stale();

private:
    struct Watched {
        std::string thread;
        std::function<std::uint64_t()> ticks;
        std::uint64_t seen;
        base::Clock::Steady since;
    };

    base::Clock& clock_;
    std::vector<Watched> watched_;
};

}  // namespace kaas::telemetry
