#pragma once

#include "base/clock.h"
#include "base/mutex.h"

#include <chrono>
#include <cstdint>

namespace kaas::storage {

/// Shares so many bytes a second out among those who read and write in the background. Whoever
/// takes says what he is about to do and waits as long as he is told; so one large piece delays the
/// next one, never itself. Thread: any.
class IoBudget {
public:
    IoBudget(base::Clock& clock, double bytes_per_second)
        : clock_(clock), bytes_per_second_(bytes_per_second) {}

    /// How long to wait before going on.
    [[nodiscard]] std::chrono::nanoseconds take(std::uint64_t bytes) KAAS_EXCLUDES(mutex_);

private:
    base::Clock& clock_;
    const double bytes_per_second_;
    base::Mutex mutex_;
    base::Clock::Steady free_ KAAS_GUARDED_BY(mutex_){};  ///< when what was taken is paid for
};

}  // namespace kaas::storage
