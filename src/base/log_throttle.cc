#include "base/log_throttle.h"

#include "base/mutex.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>

namespace kaas::base::log {

std::optional<std::uint64_t> Throttle::admit() {
    MutexLock lock(mutex_);
    const auto now = clock_.now();
    if (now - second_ >= std::chrono::seconds(1)) {
        second_ = now;
        lines_ = 0;
    }
    if (lines_ == kLinesPerSecond) {
        ++left_out_;
        return std::nullopt;
    }
    ++lines_;
    return std::exchange(left_out_, 0);
}

}  // namespace kaas::base::log
