// Goal: pauses grow and are bounded. Method: a table.

#include "base/back_off.h"

#include <gtest/gtest.h>

namespace kaas::base {
namespace {

using namespace std::chrono_literals;

TEST(BackOff, DoublesUpToTheLongestAndBeginsAgain) {
    BackOff pauses(1s, 5s);
    for (int fault = 0; fault < 2; ++fault) {
        for (const auto pause : {1s, 2s, 4s, 5s, 5s}) EXPECT_EQ(pauses.next(), pause);
        pauses.reset();
    }
}

}  // namespace
}  // namespace kaas::base
