// Goal: two brokers that do not see one volume alike do not go on. Method: probes between mounts of
// a volume in memory, some of which lie.

#include "cluster/volume_proof.h"

#include "base/executor.h"
#include "base/ids.h"
#include "base/result.h"
#include "base/uuid.h"
#include "cluster/admin.h"
#include "cluster/error.h"
#include "cluster/link_messages.h"
#include "cluster/testing_lies.h"
#include "cluster/volume_check.h"
#include "cluster/volume_witness.h"
#include "storage/memory_volume.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <expected>
#include <memory>
#include <string>
#include <utility>
#include <variant>

namespace kaas::cluster {
namespace {

using ::testing::IsEmpty;

/// What came of a proof, from the one who made the probe.
Result<void> prove(storage::Volume& mine, storage::Volume& theirs) {
    auto probe = Probe::make(mine);
    if (!probe) return std::unexpected(probe.error());
    auto seen = witness(theirs, (*probe)->ticket());
    return seen ? (*probe)->confirm() : seen;
}

TEST(VolumeProof, OneVolumeIsProvenAndLeftClean) {
    storage::MemoryVolume volume;
    LyingVolume mine(volume, Lie::kNone);
    LyingVolume theirs(volume, Lie::kNone);
    EXPECT_TRUE(prove(mine, theirs));
    EXPECT_THAT(*volume.list(std::string(kCheckDirectory)), IsEmpty());
}

TEST(VolumeProof, AnotherVolumeIsFound) {
    storage::MemoryVolume mine;
    storage::MemoryVolume copy;
    const auto proven = prove(mine, copy);
    ASSERT_FALSE(proven);
    EXPECT_EQ(proven.error().code, ErrorCode::kUnfitVolume);
    EXPECT_THAT(*mine.list(std::string(kCheckDirectory)), IsEmpty());
}

TEST(VolumeProof, AMountThatReadsOldPagesIsFound) {
    storage::MemoryVolume volume;
    LyingVolume stale(volume, Lie::kReadsNulls);
    EXPECT_EQ(prove(volume, stale).error().code, ErrorCode::kUnfitVolume);
}

TEST(VolumeProof, AMountThatDoesNotSeeTheMarkIsFound) {
    storage::MemoryVolume volume;
    LyingVolume deaf(volume, Lie::kRemembersMarks);
    EXPECT_EQ(prove(deaf, volume).error().code, ErrorCode::kUnfitVolume);
    EXPECT_TRUE(prove(volume, deaf));  // its own marks are true
}

TEST(VolumeProof, AnErrorProvesNothing) {
    storage::MemoryVolume volume;
    volume.fail_nth(storage::Operation::kLook, 1, {});
    EXPECT_EQ(prove(volume, volume).error().code, ErrorCode::kStorage);
    volume.fail_nth(storage::Operation::kMark, 1, {});
    EXPECT_EQ(prove(volume, volume).error().code, ErrorCode::kStorage);
    volume.fail_nth(storage::Operation::kSync, 1, {});
    EXPECT_EQ(prove(volume, volume).error().code, ErrorCode::kStorage);
}

/// A broker that proves itself to the controller's, as BrokerRegistration carries it.
class VolumeWitnessTest : public ::testing::Test {
protected:
    void make(storage::Volume* at_controller) {
        witness_ = std::make_shared<VolumeWitness>(
            here_, [at_controller](const std::string& name) -> storage::Volume* {
                return name == "v" ? at_controller : nullptr;
            });
    }
    Result<ProbeTickets> begin(ProbeTickets tickets) {
        Result<ProbeTickets> outcome = fail(ErrorCode::kMalformed, "no answer");
        witness_->begin(life_, std::move(tickets),
                        {&here_, [&](Result<ProbeTickets> ours) { outcome = std::move(ours); }});
        return outcome;
    }
    Result<void> finish(const BrokerLife& life) {
        Result<void> outcome = fail(ErrorCode::kMalformed, "no answer");
        witness_->finish(life, {&here_, [&](Result<std::monostate> proven) {
                                    outcome =
                                        proven ? Result<void>() : std::unexpected(proven.error());
                                }});
        return outcome;
    }
    /// The whole of it, from the broker's side.
    Result<void> prove(storage::Volume& at_broker) {
        KAAS_TRY_ASSIGN(probe, Probe::make(at_broker));
        KAAS_TRY_ASSIGN(asked, begin({{"v", probe->ticket()}}));
        KAAS_TRY(probe->confirm());
        for (const auto& [name, ticket] : asked) KAAS_TRY(witness(at_broker, ticket));
        return finish(life_);
    }

    base::InlineExecutor here_;
    const BrokerLife life_{base::BrokerId(2), base::Uuid::random()};
    std::shared_ptr<VolumeWitness> witness_;
};

TEST_F(VolumeWitnessTest, BothSidesOfOneVolumeAgree) {
    storage::MemoryVolume volume;
    make(&volume);
    EXPECT_TRUE(prove(volume));
    EXPECT_THAT(*volume.list(std::string(kCheckDirectory)), IsEmpty());
}

TEST_F(VolumeWitnessTest, ACopyIsTurnedAway) {
    storage::MemoryVolume volume;
    storage::MemoryVolume copy;
    make(&volume);
    EXPECT_EQ(prove(copy).error().code, ErrorCode::kUnfitVolume);
}

TEST_F(VolumeWitnessTest, EitherSideMaySeeNoMarks) {
    storage::MemoryVolume volume;
    LyingVolume deaf(volume, Lie::kRemembersMarks);
    make(&volume);
    EXPECT_EQ(prove(deaf).error().code, ErrorCode::kUnfitVolume);
    make(&deaf);
    EXPECT_EQ(prove(volume).error().code, ErrorCode::kUnfitVolume);
}

TEST_F(VolumeWitnessTest, ABrokerThatHasWitnessedNothingIsNotProven) {
    storage::MemoryVolume volume;
    make(&volume);
    auto probe = Probe::make(volume);
    ASSERT_TRUE(probe && begin({{"v", (*probe)->ticket()}}));
    EXPECT_EQ(finish({life_.broker, base::Uuid::random()}).error().code, ErrorCode::kStaleBroker)
        << "another life";
    EXPECT_EQ(finish(life_).error().code, ErrorCode::kUnfitVolume);
    EXPECT_EQ(finish(life_).error().code, ErrorCode::kStaleBroker) << "only once";
}

TEST_F(VolumeWitnessTest, OfAVolumeThatIsNotHereNothingIsProven) {
    make(nullptr);
    storage::MemoryVolume volume;
    auto probe = Probe::make(volume);
    ASSERT_TRUE(probe);
    const auto asked = begin({{"v", (*probe)->ticket()}});
    ASSERT_TRUE(asked);
    EXPECT_THAT(*asked, IsEmpty());
    EXPECT_TRUE(finish(life_));
}

}  // namespace
}  // namespace kaas::cluster
