#include "base/clock.h"

#include "base/mutex.h"

#include <chrono>
#include <cstdint>

namespace kaas::base {
namespace {

class SystemClock final : public Clock {
public:
    [[nodiscard]] Steady now() const override { return std::chrono::steady_clock::now(); }
    [[nodiscard]] std::int64_t wall_ms() const override {
        auto since = std::chrono::system_clock::now().time_since_epoch();
        return std::chrono::duration_cast<std::chrono::milliseconds>(since).count();
    }
};

}  // namespace

Clock& Clock::system() {
    static SystemClock clock;
    return clock;
}

Clock::Steady ManualClock::now() const {
    MutexLock lock(mutex_);
    return now_;
}

std::int64_t ManualClock::wall_ms() const {
    MutexLock lock(mutex_);
    return wall_ms_;
}

void ManualClock::advance(std::chrono::milliseconds by) {
    MutexLock lock(mutex_);
    now_ += by;
    wall_ms_ += by.count();
}

}  // namespace kaas::base
