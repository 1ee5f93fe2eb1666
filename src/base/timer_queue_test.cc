// Goal: timers fire once, in order, and cancelling one of many touches no other.
#include "base/timer_queue.h"

#include "base/clock.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>  // NOLINT(misc-include-cleaner): its literals
#include <memory>
#include <random>
#include <vector>

namespace kaas::base {
namespace {

using namespace std::chrono_literals;

TEST(TimerQueue, FiresInOrderOfDeadlineWhateverWasCancelled) {
    std::mt19937 random(5);
    Clock::Steady start;
    TimerQueue queue;
    std::vector<std::unique_ptr<TimerQueue::Entry>> timers;
    std::vector<int> fired;
    std::vector<int> expected;
    for (int i = 0; i < 5000; ++i) {
        int at = static_cast<int>(random() % 10'000);
        timers.push_back(std::make_unique<TimerQueue::Entry>());
        queue.arm(*timers.back(), start + at * 1ms, [&fired, at] { fired.push_back(at); });
        if (random() % 3 == 0) {
            queue.cancel(*timers.back());
        } else if (random() % 3 == 0) {
            at = static_cast<int>(random() % 10'000);
            queue.arm(*timers.back(), start + at * 1ms, [&fired, at] { fired.push_back(at); });
            expected.push_back(at);
        } else {
            expected.push_back(at);
        }
    }
    std::sort(expected.begin(), expected.end());
    while (auto callback = queue.take_due(start + 10s)) callback();
    EXPECT_EQ(fired, expected);
    EXPECT_EQ(queue.size(), 0U);
}

TEST(TimerQueue, NothingFiresBeforeItsTime) {
    Clock::Steady start;
    TimerQueue queue;
    TimerQueue::Entry timer;
    queue.arm(timer, start + 5ms, [] {});
    EXPECT_EQ(queue.next_deadline(), start + 5ms);
    EXPECT_FALSE(queue.take_due(start + 4ms));
    EXPECT_TRUE(timer.armed());
    EXPECT_TRUE(queue.take_due(start + 5ms));
    EXPECT_FALSE(timer.armed());
}

}  // namespace
}  // namespace kaas::base
