#pragma once

#include "base/clock.h"
#include "base/executor.h"

#include <cstddef>
#include <optional>
#include <vector>

namespace kaas::base {

/// Timers of one thread: a binary heap of entries that know their place, so that arming and
/// cancelling among tens of thousands costs a few swaps and no allocation. Passive; thread: the
/// owner's only.
class TimerQueue {
public:
    class Entry {
    public:
        Entry() = default;
        Entry(const Entry&) = delete;
        Entry& operator=(const Entry&) = delete;

        [[nodiscard]] bool armed() const { return place_ != kNowhere; }

    private:
        friend class TimerQueue;
        static constexpr std::size_t kNowhere = ~std::size_t{0};
        Clock::Steady deadline_;
        std::size_t place_ = kNowhere;
        Executor::Work callback_;
    };

    /// Replaces whatever `entry` was armed for. The entry must be cancelled before it dies.
    void arm(Entry& entry, Clock::Steady deadline, Executor::Work callback);
    void cancel(Entry& entry);

    [[nodiscard]] std::optional<Clock::Steady> next_deadline() const;
    /// Takes the callback of the earliest entry that is due at `now`; empty when none is. The entry
    /// may be armed again, or die, from within the callback.
    [[nodiscard]] Executor::Work take_due(Clock::Steady now);
    [[nodiscard]] std::size_t size() const { return heap_.size(); }

private:
    void remove(std::size_t place);
    void put(std::size_t place, Entry* entry);
    void sift_up(std::size_t place);
    void sift_down(std::size_t place);

    std::vector<Entry*> heap_;
};

}  // namespace kaas::base
