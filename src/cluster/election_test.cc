// Goal: epochs have no gaps, are never used twice, and a new one ends every lower one before it is
// told. Method: candidates on a volume in memory, with faults and crashes at each step.

#include "cluster/election.h"

#include "base/ids.h"
#include "cluster/error.h"
#include "cluster/reign.h"
#include "storage/memory_volume.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

namespace kaas::cluster {
namespace {

using storage::MemoryVolume;

class ElectionTest : public ::testing::Test {
protected:
    ElectionTest() { EXPECT_TRUE(prepare_cluster(volume_)); }
    std::unique_ptr<ElectedEpoch> stand() {
        auto epoch = ElectedEpoch::stand(volume_);
        EXPECT_TRUE(epoch) << epoch.error().context;
        return std::move(*epoch);
    }

    MemoryVolume volume_;
};

TEST_F(ElectionTest, EachEpochEndsAllBelowIt) {
    auto first = stand();
    EXPECT_EQ(first->number(), base::ControllerEpoch(1));
    EXPECT_TRUE(first->confirm());
    auto second = stand();
    EXPECT_EQ(second->number(), base::ControllerEpoch(2));
    auto third = stand();
    EXPECT_FALSE(first->confirm());
    EXPECT_FALSE(second->confirm());
    EXPECT_TRUE(third->confirm());
    EXPECT_EQ(*newest_election(volume_), base::ControllerEpoch(3));
}

TEST_F(ElectionTest, EndedEpochsStayAsNames) {
    stand();
    stand();
    EXPECT_TRUE(volume_.hold(election_path(base::ControllerEpoch(1))));
    auto again = volume_.make_directory(election_path(base::ControllerEpoch(1)));
    EXPECT_FALSE(again) << "a number is used once";
}

TEST_F(ElectionTest, OfTwoCandidatesOneIsTold) {
    // The other stands at the moment when this one has seen the newest number.
    std::unique_ptr<ElectedEpoch> other;
    bool within = false;
    volume_.set_hook([&](const MemoryVolume::Step& step) -> std::optional<storage::Fault> {
        if (step.operation == storage::Operation::kMakeDirectory && !within) {
            within = true;
            other = stand();
        }
        return std::nullopt;
    });
    auto loser = ElectedEpoch::stand(volume_);
    ASSERT_FALSE(loser);
    EXPECT_EQ(loser.error().code, ErrorCode::kSuperseded);
    EXPECT_TRUE(other->confirm());
}

TEST_F(ElectionTest, NameThatCannotBeOpenedMakesNoGap) {
    stand();
    volume_.fail_nth(storage::Operation::kHold, 1, {});
    auto epoch = ElectedEpoch::stand(volume_);
    EXPECT_FALSE(epoch) << "built on a number that nobody has seen to be there";
}

TEST_F(ElectionTest, CrashAtAnyStepNeverGivesAnEpochTwice) {
    for (std::uint64_t at = 0;; ++at) {
        for (std::uint64_t seed = 0; seed < 4; ++seed) {
            MemoryVolume volume;
            ASSERT_TRUE(prepare_cluster(volume));
            auto before = ElectedEpoch::stand(volume);
            ASSERT_TRUE(before);
            volume.halt_at(volume.steps() + at);
            auto during = ElectedEpoch::stand(volume);
            if (during) return;  // every step has had its turn
            volume.crash({.seed = seed});
            auto after = ElectedEpoch::stand(volume);
            ASSERT_TRUE(after) << "halted at step " << at << ", seed " << seed;
            EXPECT_GT((*after)->number(), base::ControllerEpoch(1));
            EXPECT_TRUE((*after)->confirm());
        }
    }
}

TEST_F(ElectionTest, FailedMarkMeansNoReign) {
    auto first = stand();
    volume_.fail_nth(storage::Operation::kMark, 1, {});
    EXPECT_FALSE(ElectedEpoch::stand(volume_));
    EXPECT_TRUE(first->confirm());
}

TEST_F(ElectionTest, BeatsAreSeenByWatchersUntilTheEnd) {
    auto epoch = stand();
    auto watcher = volume_.hold(election_path(epoch->number()));
    ASSERT_TRUE(watcher);
    ASSERT_TRUE(epoch->beat());
    const auto seen = *(*watcher)->last_beat();
    ASSERT_TRUE(epoch->beat());
    EXPECT_NE(*(*watcher)->last_beat(), seen);
    stand();
    auto beaten = epoch->beat();
    ASSERT_FALSE(beaten);
    EXPECT_EQ(beaten.error().code, ErrorCode::kFenced);
}

TEST_F(ElectionTest, CandidateWhoHasMissedAnElectionDoesNotEndItsWinner) {
    auto over = stand();
    auto winner = stand();
    auto late = ElectedEpoch::stand(volume_, base::ControllerEpoch(1), over->number());
    ASSERT_FALSE(late);
    EXPECT_EQ(late.error().code, ErrorCode::kSuperseded);
    EXPECT_TRUE(winner->confirm());
    EXPECT_TRUE(ElectedEpoch::stand(volume_, base::ControllerEpoch(1), winner->number()));
}

}  // namespace
}  // namespace kaas::cluster
