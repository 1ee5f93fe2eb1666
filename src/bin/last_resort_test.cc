// Goal: what hangs is not waited for, and what ends in time is left alone. Method: an act that says
// so; the time limits are far apart, so that nothing depends on how fast the machine is.

#include "bin/last_resort.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>

namespace kaas::bin {
namespace {

using namespace std::chrono_literals;

TEST(LastResort, ActsWhenTheTimeHasPassed) {
    std::promise<void> hangs;
    LastResort last(1ms, [&] { hangs.set_value(); });
    EXPECT_EQ(hangs.get_future().wait_for(60s), std::future_status::ready);
}

TEST(LastResort, ActsNotWhenTheEndCameBefore) {
    bool acted = false;
    {
        LastResort last(1h, [&] { acted = true; });
    }
    EXPECT_FALSE(acted);
}

}  // namespace
}  // namespace kaas::bin
