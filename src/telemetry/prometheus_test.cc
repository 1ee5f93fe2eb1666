// Goal: Prometheus reads what we count. Method: the whole text of small registries.
#include "telemetry/prometheus.h"

#include "base/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace kaas::telemetry {
namespace {

using testing::HasSubstr;

TEST(Prometheus, WritesFamiliesInOrderOfName) {
    base::metrics::Registry registry;
    registry.gauge("kaas_b", "Second").set(-3);
    registry.counter("kaas_a_total", "First", {{"topic", "t"}, {"error_code", "0"}}).add(7);
    registry.counter("kaas_a_total", "First", {{"topic", "s"}, {"error_code", "0"}}).add(1);
    registry.sampled("kaas_c", "Third", {}, [] { return 0.25; });
    EXPECT_EQ(prometheus_text(registry),
              "# HELP kaas_a_total First\n"
              "# TYPE kaas_a_total counter\n"
              "kaas_a_total{error_code=\"0\",topic=\"s\"} 1\n"
              "kaas_a_total{error_code=\"0\",topic=\"t\"} 7\n"
              "# HELP kaas_b Second\n"
              "# TYPE kaas_b gauge\n"
              "kaas_b -3\n"
              "# HELP kaas_c Third\n"
              "# TYPE kaas_c gauge\n"
              "kaas_c 0.25\n");
}

TEST(Prometheus, EscapesWhatWouldEndALabelOrALine) {
    base::metrics::Registry registry;
    registry.counter("kaas_a_total", "one \"line\"\nand \\ more", {{"topic", "q\"u\\o\nte"}});
    std::string text = prometheus_text(registry);
    EXPECT_THAT(text, HasSubstr("# HELP kaas_a_total one \"line\"\\nand \\\\ more\n"));
    EXPECT_THAT(text, HasSubstr("kaas_a_total{topic=\"q\\\"u\\\\o\\nte\"} 0\n"));
}

TEST(Prometheus, HistogramsAreCumulativeAndInSeconds) {
    base::metrics::Registry registry;
    auto& histogram = registry.histogram("kaas_h_seconds", "H", {{"api_key", "0"}});
    histogram.observe_us(100);         // on a bound
    histogram.observe_us(2'000);       // between
    histogram.observe_us(40'000'000);  // above all
    std::string text = prometheus_text(registry);
    EXPECT_THAT(text, HasSubstr("# TYPE kaas_h_seconds histogram\n"));
    EXPECT_THAT(text, HasSubstr("kaas_h_seconds_bucket{api_key=\"0\",le=\"0.0001\"} 1\n"));
    EXPECT_THAT(text, HasSubstr("kaas_h_seconds_bucket{api_key=\"0\",le=\"0.001\"} 1\n"));
    EXPECT_THAT(text, HasSubstr("kaas_h_seconds_bucket{api_key=\"0\",le=\"0.0025\"} 2\n"));
    EXPECT_THAT(text, HasSubstr("kaas_h_seconds_bucket{api_key=\"0\",le=\"30\"} 2\n"));
    EXPECT_THAT(text, HasSubstr("kaas_h_seconds_bucket{api_key=\"0\",le=\"+Inf\"} 3\n"));
    EXPECT_THAT(text, HasSubstr("kaas_h_seconds_sum{api_key=\"0\"} 40.0021\n"));
    EXPECT_THAT(text, HasSubstr("kaas_h_seconds_count{api_key=\"0\"} 3\n"));
}

TEST(Prometheus, NamesWhatIsNoNumber) {
    base::metrics::Registry registry;
    registry.sampled("kaas_a", "", {}, [] { return std::numeric_limits<double>::quiet_NaN(); });
    registry.sampled("kaas_b", "", {}, [] { return std::numeric_limits<double>::infinity(); });
    std::string text = prometheus_text(registry);
    EXPECT_THAT(text, HasSubstr("kaas_a NaN\n"));
    EXPECT_THAT(text, HasSubstr("kaas_b +Inf\n"));
}

TEST(Prometheus, AFamilyWithoutSeriesIsNotWritten) {
    base::metrics::Registry registry;
    registry.counter("kaas_a_total", "First", {{"topic", "t"}});
    registry.remove("kaas_a_total", {{"topic", "t"}});
    EXPECT_EQ(prometheus_text(registry), "");
}

}  // namespace
}  // namespace kaas::telemetry
