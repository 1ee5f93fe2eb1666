// Goal: a node that lost its reign to its disk gets the next one when the disk is well, whatever
// failed how often, and spends few epochs on it. Method: candidacies on a volume in memory that
// fails step by step, or as a full disk does.

#include "cluster/candidacy.h"

#include "base/clock.h"
#include "base/ids.h"
#include "catalog/control_log.h"
#include "cluster/election.h"
#include "cluster/error.h"
#include "cluster/reign.h"
#include "storage/memory_volume.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace kaas::cluster {
namespace {

using namespace std::chrono_literals;
using storage::MemoryVolume;
using storage::Operation;

class CandidacyTest : public ::testing::Test {
protected:
    CandidacyTest() {
        EXPECT_TRUE(prepare_cluster(volume_));
        EXPECT_TRUE(begin_reign(volume_, base::BrokerId(1), "cluster"));
    }
    std::int32_t epochs() { return newest_election(volume_)->value(); }
    /// As a full disk: nothing is made, nothing grows.
    void fill() {
        volume_.set_hook([](const MemoryVolume::Step& step) -> std::optional<storage::Fault> {
            switch (step.operation) {
                case Operation::kCreate:
                case Operation::kMakeDirectory:
                case Operation::kWrite: return storage::Fault{storage::ErrorCode::kNoSpace};
                default: return std::nullopt;
            }
        });
    }
    /// Attempts as a control thread makes them, until `when`.
    std::optional<Reign> stand_until(base::Clock::Steady when) {
        while (candidacy_.due() <= when) {
            const auto left = candidacy_.due() - clock_.now();
            if (left.count() > 0) {
                clock_.advance(std::chrono::ceil<std::chrono::milliseconds>(left));
            }
            if (auto reign = candidacy_.stand(clock_.now())) return std::move(*reign);
        }
        return std::nullopt;
    }

    base::ManualClock clock_;
    MemoryVolume volume_;
    Candidacy candidacy_{volume_, base::BrokerId(1), "cluster"};
};

TEST_F(CandidacyTest, StandsAtOnceOnAVolumeThatIsWell) {
    EXPECT_LE(candidacy_.due(), clock_.now());
    auto reign = candidacy_.stand(clock_.now());
    ASSERT_TRUE(reign) << reign.error().context;
    EXPECT_EQ(reign->image->version().epoch, base::ControllerEpoch(2));
    EXPECT_EQ(volume_.list("")->size(), 1U) << "of the question nothing is left";
}

TEST_F(CandidacyTest, FullVolumeIsAskedEachSecondAndCostsNoEpoch) {
    fill();
    EXPECT_FALSE(stand_until(clock_.now() + 1h));
    EXPECT_EQ(candidacy_.due() - clock_.now(), 1s);
    EXPECT_EQ(epochs(), 1);
    volume_.set_hook(nullptr);
    EXPECT_TRUE(stand_until(clock_.now() + 1s)) << "soon after there is space";
    EXPECT_EQ(epochs(), 2);
}

TEST_F(CandidacyTest, ReadOnlyVolumeCostsNoEpoch) {
    volume_.set_hook([](const MemoryVolume::Step& step) -> std::optional<storage::Fault> {
        switch (step.operation) {
            case Operation::kOpen:
            case Operation::kRead:
            case Operation::kList:
            case Operation::kHold:
            case Operation::kLook: return std::nullopt;
            default: return storage::Fault{};
        }
    });
    EXPECT_FALSE(stand_until(clock_.now() + 1min));
    volume_.set_hook(nullptr);
    EXPECT_EQ(epochs(), 1);
    EXPECT_TRUE(stand_until(clock_.now() + 1s));
}

TEST_F(CandidacyTest, AttemptsThatFailAfterAGoodAnswerComeSeldom) {
    volume_.set_hook([](const MemoryVolume::Step& step) -> std::optional<storage::Fault> {
        const bool control = step.path.starts_with(catalog::kControlDirectory);
        if (!control || step.operation != Operation::kWrite) return std::nullopt;
        return storage::Fault{storage::ErrorCode::kNoSpace};
    });
    EXPECT_FALSE(stand_until(clock_.now() + 1h));
    EXPECT_LE(epochs(), 1 + 6 + 120) << "doubled to 30 s";
    volume_.set_hook(nullptr);
    EXPECT_TRUE(stand_until(clock_.now() + 30s));
}

TEST_F(CandidacyTest, ReignsThatEndAtOnceComeSeldomToo) {
    ASSERT_TRUE(candidacy_.stand(clock_.now()));
    EXPECT_EQ(candidacy_.due() - clock_.now(), 1s);
    clock_.advance(1s);
    ASSERT_TRUE(candidacy_.stand(clock_.now()));
    EXPECT_EQ(candidacy_.due() - clock_.now(), 2s);
    clock_.advance(60s);
    ASSERT_TRUE(candidacy_.stand(clock_.now()));
    EXPECT_EQ(candidacy_.due() - clock_.now(), 1s) << "the last one lasted";
}

TEST_F(CandidacyTest, FailureOfAnyStepIsFollowedByAReign) {
    using Effect = storage::Fault::Effect;
    for (const auto effect : {Effect::kNone, Effect::kHalf, Effect::kWhole}) {
        for (std::uint64_t at = 0;; ++at) {
            MemoryVolume volume;
            ASSERT_TRUE(prepare_cluster(volume));
            ASSERT_TRUE(begin_reign(volume, base::BrokerId(1), "cluster"));
            Candidacy candidacy(volume, base::BrokerId(1), "cluster");
            std::uint64_t left = at;
            volume.set_hook([&](const MemoryVolume::Step&) -> std::optional<storage::Fault> {
                if (left-- != 0) return std::nullopt;
                return storage::Fault{storage::ErrorCode::kIo, effect};
            });
            const bool whole = candidacy.stand(clock_.now()).has_value();
            const bool reached = left > at;
            volume.set_hook(nullptr);
            auto reign = candidacy.stand(clock_.now());
            ASSERT_TRUE(reign) << "step " << at << ": " << reign.error().context;
            EXPECT_EQ(reign->image->cluster_id(), "cluster");
            EXPECT_LE(newest_election(volume)->value(), 3);
            if (whole && !reached) break;
        }
    }
}

}  // namespace
}  // namespace kaas::cluster
