#include "storage/io_budget.h"

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace kaas::storage {

std::chrono::nanoseconds IoBudget::take(std::uint64_t bytes) {
    constexpr double kNanosPerSecond = 1e9;
    constexpr std::chrono::hours kLongest{24};  // a tiny budget must not overflow the clock
    const auto price =
        std::min<double>(static_cast<double>(bytes) / bytes_per_second_ * kNanosPerSecond,
                         static_cast<double>(std::chrono::nanoseconds(kLongest).count()));
    base::MutexLock lock(mutex_);
    const auto now = clock_.now();
    const auto begins = std::max(free_, now);
    free_ = begins + std::chrono::nanoseconds(static_cast<std::int64_t>(price));
    return begins - now;
}

}  // namespace kaas::storage
