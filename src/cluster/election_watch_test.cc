// Goal: a controller that counts up is never taken for one that stands still, and a new one begins
// anew. Method: elected epochs on a volume in memory, and times that the test says.

#include "cluster/election_watch.h"

#include "base/clock.h"
#include "base/ids.h"
#include "cluster/election.h"
#include "cluster/error.h"
#include "cluster/reign.h"
#include "storage/memory_volume.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <utility>

namespace kaas::cluster {
namespace {

using namespace std::chrono_literals;

class ElectionWatchTest : public ::testing::Test {
protected:
    ElectionWatchTest() { EXPECT_TRUE(prepare_cluster(volume_)); }
    std::unique_ptr<ElectedEpoch> stand() { return std::move(*ElectedEpoch::stand(volume_)); }
    ElectionWatch::Sight look(std::chrono::milliseconds passed) {
        now_ += passed;
        auto sight = watch_.look(now_);
        EXPECT_TRUE(sight) << sight.error().context;
        return sight ? *sight : ElectionWatch::Sight{};
    }

    storage::MemoryVolume volume_;
    ElectionWatch watch_{volume_};
    base::Clock::Steady now_{1h};
};

TEST_F(ElectionWatchTest, NobodyEverStood) {
    EXPECT_EQ(look(0ms).newest, base::ControllerEpoch(0));
    EXPECT_EQ(look(1h).still, 0ms);
}

TEST_F(ElectionWatchTest, StillnessCountsFromTheFirstLook) {
    auto epoch = stand();
    const auto first = look(0ms);
    EXPECT_EQ(first.newest, base::ControllerEpoch(1));
    EXPECT_EQ(first.still, 0ms) << "its clock is not known, only this one's";
    EXPECT_EQ(look(700ms).still, 700ms);
    EXPECT_EQ(look(300ms).still, 1s);
}

TEST_F(ElectionWatchTest, EachBeatBeginsAnew) {
    auto epoch = stand();
    look(0ms);
    look(5s);
    ASSERT_TRUE(epoch->beat());
    EXPECT_EQ(look(1s).still, 0ms);
    EXPECT_EQ(look(1s).still, 1s);
    ASSERT_TRUE(epoch->beat());
    EXPECT_EQ(look(1s).still, 0ms);
}

TEST_F(ElectionWatchTest, SuccessorBeginsAnew) {
    auto first = stand();
    ASSERT_TRUE(first->beat());
    look(0ms);
    look(5s);
    auto second = stand();
    const auto sight = look(1s);
    EXPECT_EQ(sight.newest, base::ControllerEpoch(2));
    EXPECT_EQ(sight.still, 0ms);
    EXPECT_EQ(look(1s).still, 1s);
}

TEST_F(ElectionWatchTest, EpochThatItsControllerEndsIsOverAtOnce) {
    auto epoch = stand();
    EXPECT_FALSE(look(0ms).over);
    ASSERT_TRUE(epoch->end());
    EXPECT_TRUE(look(1ms).over);
    EXPECT_EQ(epoch->beat().error().code, ErrorCode::kFenced) << "for its controller too";
    auto next = stand();
    EXPECT_FALSE(look(1ms).over);
}

TEST_F(ElectionWatchTest, LookThatFailsSaysNothing) {
    auto epoch = stand();
    look(0ms);
    volume_.halt_at(volume_.steps());
    auto sight = watch_.look(now_ + 10s);
    ASSERT_FALSE(sight);
    EXPECT_EQ(sight.error().code, ErrorCode::kStorage);
}

}  // namespace
}  // namespace kaas::cluster
