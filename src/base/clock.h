#pragma once

#include "base/mutex.h"

#include <chrono>
#include <cstdint>

namespace kaas::base {

/// The only source of time. Passive state machines take one, so that a test or a seeded scheduler
/// drives them. Thread: any.
class Clock {
public:
    using Steady = std::chrono::steady_clock::time_point;

    virtual ~Clock() = default;
    /// For deadlines and durations; never goes back.
    [[nodiscard]] virtual Steady now() const = 0;
    /// Milliseconds since 1970 UTC, as Kafka's timestamps; may jump.
    [[nodiscard]] virtual std::int64_t wall_ms() const = 0;

    /// The machine's clocks.
    [[nodiscard]] static Clock& system();
};

/// A clock that stands still until it is told to move.
class ManualClock final : public Clock {
public:
    explicit ManualClock(std::int64_t wall_ms = 1'700'000'000'000) : wall_ms_(wall_ms) {}

    [[nodiscard]] Steady now() const override KAAS_EXCLUDES(mutex_);
    [[nodiscard]] std::int64_t wall_ms() const override KAAS_EXCLUDES(mutex_);
    void advance(std::chrono::milliseconds by) KAAS_EXCLUDES(mutex_);

private:
    mutable Mutex mutex_;
    Steady now_ KAAS_GUARDED_BY(mutex_){std::chrono::hours(1)};
    std::int64_t wall_ms_ KAAS_GUARDED_BY(mutex_);
};

}  // namespace kaas::base
