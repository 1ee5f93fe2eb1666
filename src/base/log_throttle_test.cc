// Goal: no flood of bad requests becomes a flood of lines, and none is lost from the count.
// Method: a clock that stands still.

#include "base/log_throttle.h"

#include "base/clock.h"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>

namespace kaas::base::log {
namespace {

TEST(LogThrottle, FewPassEachSecondAndTheNextOneTellsTheRest) {
    ManualClock clock;
    Throttle throttle(clock);
    for (int i = 0; i < Throttle::kLinesPerSecond; ++i) EXPECT_EQ(throttle.admit(), 0U);
    for (int i = 0; i < 1000; ++i) EXPECT_EQ(throttle.admit(), std::nullopt);
    clock.advance(std::chrono::milliseconds(999));
    EXPECT_EQ(throttle.admit(), std::nullopt);
    clock.advance(std::chrono::milliseconds(1));
    EXPECT_EQ(throttle.admit(), 1001U);
    EXPECT_EQ(throttle.admit(), 0U) << "told once";
}

}  // namespace
}  // namespace kaas::base::log
