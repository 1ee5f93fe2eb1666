#include "storage/io_budget.h"

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace kaas::storage {

std::chrono::nanoseconds IoBudget::take(std::uint64_t bytes) {
    // A budget of nearly nothing, or of what is no number, must not overflow the clock.
    constexpr double kLongestSeconds = 24.0 * 3600;
    auto seconds = static_cast<double>(bytes) / bytes_per_second_;
    if (!(seconds >= 0 && seconds < kLongestSeconds)) seconds = kLongestSeconds;
    base::MutexLock lock(mutex_);
    const auto now = clock_.now();
    const auto begins = std::max(free_, now);
    free_ = begins + std::chrono::duration_cast<base::Clock::Steady::duration>(
                         std::chrono::duration<double>(seconds));
    return begins - now;
}

}  // namespace kaas::storage
