// Goal: a manual clock moves both of its hands, and only when told.
#include "base/clock.h"

#include <gtest/gtest.h>

#include <chrono>

namespace kaas::base {
namespace {

TEST(ManualClock, AdvancesBothClocks) {
    ManualClock clock(1000);
    auto before = clock.now();
    EXPECT_EQ(clock.now(), before);
    clock.advance(std::chrono::milliseconds(250));
    EXPECT_EQ(clock.now() - before, std::chrono::milliseconds(250));
    EXPECT_EQ(clock.wall_ms(), 1250);
}

TEST(SystemClock, NeverGoesBack) {
    auto before = Clock::system().now();
    EXPECT_LE(before, Clock::system().now());
    EXPECT_GT(Clock::system().wall_ms(), 1'700'000'000'000);
}

}  // namespace
}  // namespace kaas::base
