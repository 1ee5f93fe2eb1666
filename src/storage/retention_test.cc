// Goal: a log lets go of exactly what Apache's would. Method: one row a rule; segments as facts.

#include "storage/retention.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace kaas::storage {
namespace {

constexpr std::int64_t kNow = 1'000'000;

/// Segments of 100 offsets each, one behind the other.
[[nodiscard]] std::vector<SegmentFacts> segments(const std::vector<std::int64_t>& times_ms,
                                                 std::uint64_t bytes = 1000) {
    std::vector<SegmentFacts> list;
    for (std::size_t i = 0; i < times_ms.size(); ++i) {
        const auto base = static_cast<std::int64_t>(i) * 100;
        list.push_back({.epoch = base::LeaderEpoch{0},
                        .base = base::Offset{base},
                        .end = base::Offset{base + 100},
                        .bytes = bytes,
                        .max_timestamp_ms = times_ms[i],
                        .max_timestamp_offset = base::Offset{times_ms[i] < 0 ? -1 : base}});
    }
    return list;
}

[[nodiscard]] SegmentFacts empty_at(std::int64_t base) {
    return {.epoch = base::LeaderEpoch{0}, .base = base::Offset{base}, .end = base::Offset{base}};
}

[[nodiscard]] LogConfig keep(std::int64_t time_ms, std::int64_t bytes, bool deletes = true) {
    LogConfig config;
    config.retention_ms = time_ms;
    config.retention_bytes = bytes;
    config.deletes = deletes;
    return config;
}

TEST(RetentionTest, WhatGoes) {
    struct Row {
        std::string fault;
        std::vector<SegmentFacts> segments;
        LogConfig config;
        std::int64_t log_start;
        std::size_t going;
        bool last = false;
    };
    auto with_empty_last = segments({1, 2});
    with_empty_last.push_back(empty_at(200));
    auto timeless = segments({-1, -1});
    timeless[0].appended_ms = kNow - 501;
    timeless[1].appended_ms = kNow - 500;
    for (const auto& row : {
             Row{"an age that is just reached goes", segments({kNow - 500, kNow}), keep(500, -1), 0,
                 0},
             Row{"an old segment stays", segments({kNow - 501, kNow}), keep(500, -1), 0, 1},
             Row{"a young segment does not protect what is before it",
                 segments({kNow - 501, kNow, kNow}), keep(500, -1), 0, 1},
             Row{"an old segment behind a young one goes", segments({kNow, 1, kNow}), keep(500, -1),
                 0, 0},
             Row{"a time in the future goes", segments({kNow + 1, 1, 1}), keep(0, -1), 0, 0},
             Row{"all is old, and the last stays", segments({1, 2, 3}), keep(500, -1), 0, 2, true},
             Row{"an empty last one is rolled", with_empty_last, keep(500, -1), 0, 2},
             Row{"-1 is a limit of time", segments({1, 2, 3}), keep(-1, -1), 0, 0},
             Row{"records without time never go", timeless, keep(500, -1), 0, 1},
             Row{"less than the limit goes", segments({1, 1, 1}), keep(-1, 3001), 0, 0},
             Row{"the limit itself is exceeded", segments({1, 1, 1}), keep(-1, 3000), 0, 0},
             Row{"a segment goes that is not wholly too much", segments({1, 1, 1}), keep(-1, 2001),
                 0, 0},
             Row{"what is too much stays", segments({1, 1, 1}), keep(-1, 2000), 0, 1},
             Row{"a limit of 0 keeps the last", segments({1, 1, 1}), keep(-1, 0), 0, 2, true},
             Row{"size is counted with what time takes", segments({kNow - 501, kNow, kNow}),
                 keep(500, 2000), 0, 1},
             Row{"a segment that is partly below the start goes", segments({1, 1, 1}), keep(-1, -1),
                 99, 0},
             Row{"what is below the start stays", segments({1, 1, 1}), keep(-1, -1), 100, 1},
             Row{"the last goes when the log starts at its end", segments({1, 1, 1}), keep(-1, -1),
                 300, 2},
             Row{"size counts what is below the start", segments({1, 1, 1}), keep(-1, 2000), 100,
                 1},
             Row{"a compacted topic loses by age", segments({1, 2, 3}), keep(0, 0, false), 0, 0},
             Row{"a compacted topic keeps what is below the start", segments({1, 2, 3}),
                 keep(0, 0, false), 200, 2},
             Row{"no segment at all", {}, keep(0, 0), 0, 0},
         }) {
        const auto plan =
            plan_retention(row.segments, base::Offset{row.log_start}, kNow, row.config);
        EXPECT_EQ(plan.segments, row.going) << row.fault;
        EXPECT_EQ(plan.last, row.last) << row.fault;
    }
}

}  // namespace
}  // namespace kaas::storage
