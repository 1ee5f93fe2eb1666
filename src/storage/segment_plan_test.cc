// Goal: segments are cut and indexed as by Apache. Method: small rules, one a test, on the plan
// alone.

#include "storage/segment_plan.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace kaas::storage {
namespace {

class SegmentPlanTest : public ::testing::Test {
protected:
    [[nodiscard]] BatchFacts next(std::uint64_t bytes, std::int64_t time_ms = 0,
                                  std::int64_t records = 1) const {
        const auto base = plan_.facts().end;
        return {.base_offset = base,
                .last_offset = base + (records - 1),
                .bytes = bytes,
                .max_timestamp_ms = time_ms,
                .now_ms = 0};
    }
    SegmentPlan::Placement add(std::uint64_t bytes, std::int64_t time_ms = 0,
                               std::int64_t records = 1) {
        return plan_.add(next(bytes, time_ms, records), config_);
    }
    [[nodiscard]] bool rolls(const BatchFacts& batch, std::int64_t now_ms = 0) const {
        return plan_.must_roll_before(batch, now_ms, config_);
    }

    LogConfig config_;
    SegmentPlan plan_{base::LeaderEpoch{0}, base::Offset{100}, 0, 0};
};

TEST_F(SegmentPlanTest, BatchesStandOneBehindTheOther) {
    EXPECT_EQ(add(70).position, 0);
    EXPECT_EQ(add(80, 0, 5).position, 70);
    EXPECT_EQ(add(90).position, 150);
    EXPECT_EQ(plan_.facts().bytes, 240);
    EXPECT_EQ(plan_.facts().end, base::Offset{107});
}

TEST_F(SegmentPlanTest, ARecordOlderThanAnyTimeHasNotWaited) {
    add(70, 5);
    EXPECT_FALSE(rolls(next(70, std::numeric_limits<std::int64_t>::min())));
    EXPECT_TRUE(rolls(next(70, std::numeric_limits<std::int64_t>::max())));
}

TEST_F(SegmentPlanTest, AnEntryComesAfterMoreThanTheInterval) {
    config_.index_interval_bytes = 100;
    EXPECT_FALSE(add(100, 5).offset_entry);
    // Exactly the interval is not more.
    EXPECT_FALSE(add(1, 6).offset_entry);
    const auto indexed = add(50, 7, 3);
    ASSERT_TRUE(indexed.offset_entry);
    EXPECT_EQ(indexed.offset_entry->position, 101);
    EXPECT_EQ(indexed.offset_entry->relative_offset, 4);  // of the last record
    ASSERT_TRUE(indexed.time_entry);
    EXPECT_EQ(indexed.time_entry->timestamp_ms, 7);
}

TEST_F(SegmentPlanTest, TheTimeIndexNamesTheNewestOnceAndOnlyGrows) {
    config_.index_interval_bytes = 0;
    add(10, 50);
    const auto first = add(10, 20);
    ASSERT_TRUE(first.time_entry);
    EXPECT_EQ(first.time_entry->timestamp_ms, 50);
    EXPECT_EQ(first.time_entry->relative_offset, 0);
    EXPECT_FALSE(add(10, 50).time_entry);
    EXPECT_TRUE(add(10, 51).time_entry);
    EXPECT_FALSE(plan_.time_entry());
    SegmentPlan fresh(base::LeaderEpoch{0}, base::Offset{0}, 0, 0);
    EXPECT_FALSE(fresh.time_entry());
}

TEST_F(SegmentPlanTest, ASegmentIsFullWhenTheBatchDoesNotFit) {
    config_.segment_bytes = 100;
    add(60);
    EXPECT_FALSE(rolls(next(40)));
    EXPECT_TRUE(rolls(next(41)));
}

TEST_F(SegmentPlanTest, OffsetsStayWithinAnIndexEntry) {
    constexpr auto kMost = std::numeric_limits<std::int32_t>::max();
    add(10);
    EXPECT_FALSE(rolls({.base_offset = base::Offset{101},
                        .last_offset = base::Offset{100} + kMost,
                        .bytes = 1,
                        .max_timestamp_ms = 0,
                        .now_ms = 0}));
    EXPECT_TRUE(rolls({.base_offset = base::Offset{101},
                       .last_offset = base::Offset{101} + kMost,
                       .bytes = 1,
                       .max_timestamp_ms = 0,
                       .now_ms = 0}));
}

TEST_F(SegmentPlanTest, AgeGoesByTheRecordsTimes) {
    config_.segment_ms = 1000;
    EXPECT_FALSE(rolls(next(10, 1'000'000), 5000)) << "an empty segment does not roll";
    add(10, 500);
    EXPECT_FALSE(rolls(next(10, 1500), 999'999));
    EXPECT_TRUE(rolls(next(10, 1501), 0));
}

TEST_F(SegmentPlanTest, ASegmentOfACompactedLogLastsNoLongerThanItsRecordsMayWait) {
    config_.segment_ms = 1000;
    config_.max_compaction_lag_ms = 200;
    add(10, 500);
    EXPECT_FALSE(rolls(next(10, 701))) << "the lag is that of compaction";
    config_.compacted = true;
    EXPECT_FALSE(rolls(next(10, 700)));
    EXPECT_TRUE(rolls(next(10, 701)));
    config_.segment_ms = 100;
    EXPECT_TRUE(rolls(next(10, 601)));
}

TEST_F(SegmentPlanTest, WithoutTimesAgeGoesByTheClock) {
    config_.segment_ms = 1000;
    add(10, -1);
    EXPECT_FALSE(rolls(next(10, -1), 1000));
    EXPECT_TRUE(rolls(next(10, -1), 1001));
}

TEST_F(SegmentPlanTest, JitterTakesAway) {
    config_.segment_ms = 1000;
    plan_ = SegmentPlan(base::LeaderEpoch{0}, base::Offset{0}, 0, 300);
    add(10, 0);
    EXPECT_FALSE(rolls(next(10, 700)));
    EXPECT_TRUE(rolls(next(10, 701)));
}

TEST_F(SegmentPlanTest, FullIndexesRoll) {
    config_.index_interval_bytes = 0;
    config_.segment_index_bytes =
        36;  // four offset entries, or three time entries less the closing one
    add(10, 1);
    add(10, 2);
    EXPECT_FALSE(rolls(next(10, 3)));
    add(10, 3);
    EXPECT_TRUE(rolls(next(10, 4)));
    plan_ = SegmentPlan(base::LeaderEpoch{0}, base::Offset{0}, 0, 0);
    for (int i = 0; i < 5; ++i) add(10, 1);
    EXPECT_TRUE(rolls(next(10, 1)));
}

}  // namespace
}  // namespace kaas::storage
