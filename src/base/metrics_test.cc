// Goal: series keep their identity and histograms put each value where it belongs.
#include "base/metrics.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace kaas::base::metrics {
namespace {

TEST(Registry, GivesTheSameSeriesForTheSameLabelsInAnyOrder) {
    Registry registry;
    Counter& a = registry.counter("kaas_x_total", "x", {{"topic", "t"}, {"code", "1"}});
    Counter& b = registry.counter("kaas_x_total", "x", {{"code", "1"}, {"topic", "t"}});
    Counter& c = registry.counter("kaas_x_total", "x", {{"code", "2"}, {"topic", "t"}});
    EXPECT_EQ(&a, &b);
    EXPECT_NE(&a, &c);
}

TEST(Registry, VisitsFamiliesByNameAndForgetsRemovedSeries) {
    Registry registry;
    registry.gauge("kaas_b", "b").set(7);
    registry.counter("kaas_a_total", "a", {{"topic", "t"}}).add(2);
    registry.sampled("kaas_c", "c", {}, [] { return 1.5; });
    registry.remove("kaas_a_total", {{"topic", "t"}});
    std::vector<std::string> seen;
    registry.visit([&](const std::string& name, const Registry::Family& family) {
        seen.push_back(name + ":" + std::to_string(family.series.size()));
    });
    EXPECT_EQ(seen, (std::vector<std::string>{"kaas_a_total:0", "kaas_b:1", "kaas_c:1"}));
}

TEST(Histogram, CountsAtAndAboveItsBounds) {
    Histogram histogram;
    histogram.observe_us(0);
    histogram.observe_us(100);
    histogram.observe_us(101);
    histogram.observe_us(31'000'000);
    auto counts = histogram.counts();
    EXPECT_EQ(counts.front(), 2U);
    EXPECT_EQ(counts[1], 1U);
    EXPECT_EQ(counts.back(), 1U);
    EXPECT_EQ(histogram.sum_us(), 31'000'201U);
}

}  // namespace
}  // namespace kaas::base::metrics
