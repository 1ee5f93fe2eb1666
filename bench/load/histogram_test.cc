// Goal: a quantile is never below the true one and at most 1.6% above it.
#include "load/histogram.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace kaas::bench {
namespace {

TEST(Histogram, QuantilesAreCloseFromAbove) {
    Histogram latency;
    for (int64_t i = 1; i <= 1000; ++i) latency.record(i * 10'000);
    for (const double quantile : {0.5, 0.9, 0.99}) {
        const double exact_ms = quantile * 10;
        EXPECT_GE(latency.quantile_ms(quantile), exact_ms);
        EXPECT_LE(latency.quantile_ms(quantile), exact_ms * 1.017 + 0.01);
    }
    EXPECT_EQ(latency.count(), 1000U);
}

TEST(Histogram, NeverSaysMoreThanTheLargest) {
    Histogram latency;
    latency.record(1'234'567);
    EXPECT_DOUBLE_EQ(latency.quantile_ms(0.5), 1.234567);
    EXPECT_DOUBLE_EQ(latency.max_ms(), 1.234567);
}

TEST(Histogram, TakesEveryValue) {
    Histogram latency;
    latency.record(-5);
    latency.record(0);
    latency.record(INT64_MAX);
    EXPECT_EQ(latency.count(), 3U);
}

}  // namespace
}  // namespace kaas::bench
