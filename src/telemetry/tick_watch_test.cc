// Goal: a thread is called wedged when, and only when, its counter stood still.
#include "telemetry/tick_watch.h"

#include "base/clock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>

namespace kaas::telemetry {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

TEST(TickWatch, NamesTheThreadThatStandsStill) {
    base::ManualClock clock;
    TickWatch watch(clock);
    std::uint64_t moving = 0;
    std::uint64_t standing = 0;
    watch.watch("reactor-0", [&] { return moving; });
    watch.watch("reactor-1", [&] { return standing; });
    EXPECT_THAT(watch.stale(), IsEmpty());
    clock.advance(4999ms);
    ++moving;
    EXPECT_THAT(watch.stale(), IsEmpty());
    clock.advance(1ms);
    EXPECT_THAT(watch.stale(), ElementsAre("reactor-1"));
    ++standing;
    EXPECT_THAT(watch.stale(), IsEmpty());
}

TEST(TickWatch, RarelyAskingDoesNotMakeAThreadStale) {
    base::ManualClock clock;
    TickWatch watch(clock);
    std::uint64_t ticks = 0;
    watch.watch("reactor-0", [&] { return ticks; });
    for (int i = 0; i < 3; ++i) {
        clock.advance(1h);
        ++ticks;
        EXPECT_THAT(watch.stale(), IsEmpty());
    }
}

}  // namespace
}  // namespace kaas::telemetry
