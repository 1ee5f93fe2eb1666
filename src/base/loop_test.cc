// Goal: work keeps its order, a timer fires without work to wake the thread, an end runs what was
// posted before it.
#include "base/loop.h"

#include "base/clock.h"
#include "base/timer_queue.h"

#include <gtest/gtest.h>

#include <chrono>  // NOLINT(misc-include-cleaner): its literals
#include <cstddef>
#include <functional>
#include <future>
#include <vector>

namespace kaas::base {
namespace {

using namespace std::chrono_literals;

TEST(Loop, RunsWorkInTheOrderInWhichOneThreadPostedIt) {
    std::vector<int> ran;
    {
        Loop loop("order");
        for (int i = 0; i < 1000; ++i) loop.post([&ran, i] { ran.push_back(i); });
        loop.stop();
        loop.post([&ran] { ran.push_back(-1); });
    }
    ASSERT_EQ(ran.size(), 1000U);
    for (int i = 0; i < 1000; ++i) EXPECT_EQ(ran[static_cast<std::size_t>(i)], i);
}

TEST(Loop, FiresATimerWhileNobodyPosts) {
    TimerQueue::Entry near;
    TimerQueue::Entry far;
    TimerQueue::Entry cancelled;
    std::vector<int> fired;
    std::promise<void> done;
    Loop loop("timers");
    loop.post([&] {
        const auto now = Clock::system().now();
        loop.timers().arm(far, now + 2ms, [&] {
            fired.push_back(2);
            done.set_value();
        });
        loop.timers().arm(near, now + 1ms, [&] { fired.push_back(1); });
        loop.timers().arm(cancelled, now + 1ms, [&] { fired.push_back(0); });
        loop.timers().cancel(cancelled);
    });
    done.get_future().wait();
    loop.stop();
    EXPECT_EQ(fired, (std::vector<int>{1, 2}));
}

TEST(Loop, ATimerMayArmItselfAgain) {
    TimerQueue::Entry entry;
    std::promise<void> done;
    Loop loop("again");
    int left = 3;
    std::function<void()> again = [&] {
        if (--left == 0) return done.set_value();
        loop.timers().arm(entry, Clock::system().now(), [&] { again(); });
    };
    loop.post([&] { again(); });
    done.get_future().wait();
    loop.stop();
    EXPECT_EQ(left, 0);
}

}  // namespace
}  // namespace kaas::base
