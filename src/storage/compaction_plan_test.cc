// Goal: what may be compacted, and which segments become one, is as Apache 4.4 has it.
#include "storage/compaction_plan.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

namespace kaas::storage {
namespace {

class FindCleanableTest : public ::testing::Test {
protected:
    /// Sealed segments of ten offsets and a hundred bytes; the last is appended to.
    [[nodiscard]] static LogView log_of(int sealed) {
        auto spans = std::make_shared<std::vector<SegmentSpan>>();
        for (int i = 0; i < sealed; ++i) spans->push_back(segment(i));
        LogView view{.sealed = std::move(spans), .last = segment(sealed)};
        view.high_watermark = view.last_stable_offset = view.last.facts.end;
        return view;
    }
    [[nodiscard]] static SegmentSpan segment(std::int64_t index) {
        const SegmentName name{base::LeaderEpoch{0}, base::Offset{index * 10}};
        return {std::make_shared<Segment>(PartitionPaths{"t"}, name, IndexOrigin::kNew),
                {.epoch = name.epoch,
                 .base = name.base,
                 .end = name.base + 10,
                 .bytes = 100,
                 .max_timestamp_ms = 1000 + index * 10,
                 .max_timestamp_offset = name.base + 9}};
    }
    [[nodiscard]] Cleanable find(const LogView& view, std::int64_t clean_to) const {
        return find_cleanable(view, base::Offset{clean_to}, config_, 2000);
    }

    LogConfig config_;
};

TEST_F(FindCleanableTest, AllButTheSegmentThatIsAppendedTo) {
    const auto found = find(log_of(3), 0);
    EXPECT_EQ(found.first_dirty, base::Offset{0});
    EXPECT_EQ(found.first_uncleanable, base::Offset{30});
    EXPECT_EQ(found.sealed_end, 3u);
    EXPECT_EQ(found.dirty_bytes, 300u);
    EXPECT_EQ(found.ratio(), 1);
}

TEST_F(FindCleanableTest, CleanSegmentsCountAsClean) {
    const auto found = find(log_of(3), 20);
    EXPECT_EQ(found.sealed_dirty, 2u);
    EXPECT_EQ(found.clean_bytes, 200u);
    EXPECT_EQ(found.dirty_bytes, 100u);
}

TEST_F(FindCleanableTest, HalfCleanSegmentCountsTwice) {
    const auto found = find(log_of(3), 25);
    EXPECT_EQ(found.sealed_dirty, 2u);
    EXPECT_EQ(found.clean_bytes, 300u);
    EXPECT_EQ(found.dirty_bytes, 100u);
}

TEST_F(FindCleanableTest, NothingFromTheLastStableOffsetOn) {
    auto view = log_of(3);
    view.last_stable_offset = base::Offset{15};
    const auto found = find(view, 0);
    EXPECT_EQ(found.first_uncleanable, base::Offset{10});
    EXPECT_EQ(found.dirty_bytes, 100u);
}

TEST_F(FindCleanableTest, NothingFromTheFirstYoungSegmentOn) {
    config_.min_compaction_lag_ms = 990;  // younger than 1010
    const auto found = find(log_of(3), 0);
    EXPECT_EQ(found.first_uncleanable, base::Offset{20});
    EXPECT_EQ(find(log_of(3), 30).sealed_end, 3u) << "what is clean already may be young";
}

TEST_F(FindCleanableTest, PlaceThatIsNotInTheLogCountsFromItsStart) {
    auto view = log_of(3);
    EXPECT_EQ(find(view, 1000).first_dirty, base::Offset{0});
    view.log_start = base::Offset{12};
    EXPECT_EQ(find(view, 5).first_dirty, base::Offset{12});
}

TEST_F(FindCleanableTest, LogThatWasOnlyOpenedKeepsWhatWasAppendedToLast) {
    auto view = log_of(3);
    view.high_watermark = view.last_stable_offset = base::Offset{30};
    view.last = {};
    const auto found = find(view, 0);
    EXPECT_EQ(found.first_uncleanable, base::Offset{20});
    EXPECT_EQ(found.sealed_end, 2u);
}

TEST_F(FindCleanableTest, EmptyLogIsClean) {
    LogView view{.sealed = std::make_shared<const std::vector<SegmentSpan>>()};
    EXPECT_EQ(find(view, 0).ratio(), 0);
}

class GroupSegmentsTest : public ::testing::Test {
protected:
    GroupSegmentsTest() {
        config_.segment_bytes = 100;
        config_.segment_index_bytes = 80;
    }
    [[nodiscard]] static SegmentExtent extent(std::int64_t first, std::uint64_t bytes,
                                              std::uint64_t offsets = 8, std::uint64_t times = 12) {
        return {base::Offset{first}, base::Offset{first + 9}, bytes, offsets, times};
    }
    [[nodiscard]] std::vector<std::pair<std::size_t, std::size_t>> group(
        const std::vector<SegmentExtent>& segments) const {
        std::vector<std::pair<std::size_t, std::size_t>> found;
        for (const auto& one : group_segments(segments, config_))
            found.emplace_back(one.first, one.last);
        return found;
    }
    using Groups = std::vector<std::pair<std::size_t, std::size_t>>;

    LogConfig config_;
};

TEST_F(GroupSegmentsTest, AsManyAsOneCouldHold) {
    EXPECT_EQ(group({extent(0, 40), extent(10, 60), extent(20, 1), extent(30, 100)}),
              (Groups{{0, 2}, {2, 3}, {3, 4}}));
    EXPECT_EQ(group({extent(0, 500)}), (Groups{{0, 1}})) << "one alone is always a group";
    EXPECT_EQ(group({}), Groups{});
}

TEST_F(GroupSegmentsTest, IndexesMustFitToo) {
    EXPECT_EQ(group({extent(0, 1, 40), extent(10, 1, 40), extent(20, 1, 8)}),
              (Groups{{0, 2}, {2, 3}}));
    EXPECT_EQ(group({extent(0, 1, 8, 60), extent(10, 1, 8, 24)}), (Groups{{0, 1}, {1, 2}}));
}

TEST_F(GroupSegmentsTest, OffsetsMustFitTheirFourBytes) {
    const auto far = std::int64_t{std::numeric_limits<std::int32_t>::max()};
    EXPECT_EQ(group({extent(0, 1), extent(far - 9, 1)}), (Groups{{0, 2}}));
    EXPECT_EQ(group({extent(0, 1), extent(far - 8, 1)}), (Groups{{0, 1}, {1, 2}}));
}

}  // namespace
}  // namespace kaas::storage
