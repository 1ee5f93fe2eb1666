// Goal: however many look for a coordinator at first, its topic is asked for once, and each of them
// hears when it is there, or that nobody waits any longer. Method: a real controller on a volume in
// memory that the test steps.

#include "broker/coordination/slot_topics.h"

#include "base/clock.h"
#include "base/executor.h"
#include "base/ids.h"
#include "base/uuid.h"
#include "catalog/model.h"
#include "catalog/slot.h"
#include "cluster/controller.h"
#include "cluster/reign.h"
#include "storage/memory_volume.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <utility>
#include <variant>
#include <vector>

namespace kaas::broker {
namespace {

using namespace std::chrono_literals;
using catalog::SlotKind;

class SlotTopicsTest : public ::testing::Test {
protected:
    SlotTopicsTest() {
        EXPECT_TRUE(cluster::prepare_cluster(volume_));
        auto reign = cluster::begin_reign(volume_, base::BrokerId(1), "cluster");
        EXPECT_TRUE(reign);
        controller_.begin(std::move(*reign));
        catalog::Broker self{.id = base::BrokerId(1)};
        self.sessions.emplace("main", base::Incarnation{base::Uuid::random()});
        controller_.register_broker(
            self, {&here_, [](cluster::Result<std::monostate> joined) { EXPECT_TRUE(joined); }});
        controller_.step();
        pushes_.clear();
    }

    /// As a node does when it stops: whoever waits is answered.
    void TearDown() override { controller_.resign(); }

    void make(SlotKind kind) {
        topics_.make(kind, here_, [this] { ++done_; });
    }

    storage::MemoryVolume volume_;
    base::ManualClock clock_;
    base::InlineExecutor here_;
    std::vector<cluster::Push> pushes_;
    cluster::Controller controller_{
        {.clock = &clock_,
         .config = {.slot_topics = {{SlotKind::kGroup, {.slots = 3}}}, .slot_volume = "main"},
         .push = [this](const cluster::Push& push) { pushes_.push_back(push); }}};
    ControllerCalls calls_{{.controller = &controller_, .self = base::BrokerId(1)}};
    SlotTopics topics_{calls_, clock_};
    std::size_t done_ = 0;
};

TEST_F(SlotTopicsTest, ManyAskersAreOneRequestAndHearWhenTheSlotsAreServed) {
    for (int i = 0; i < 3; ++i) make(SlotKind::kGroup);
    controller_.step();
    ASSERT_EQ(pushes_.size(), 1U);
    EXPECT_EQ(pushes_[0].changes.size(), 1U);
    EXPECT_EQ(pushes_[0].image->topic("__consumer_offsets")->partitions.size(), 3U);
    EXPECT_EQ(done_, 0U) << "the broker has not opened them";
    make(SlotKind::kGroup);
    controller_.step();
    EXPECT_EQ(done_, 0U) << "who comes meanwhile waits, too";
    controller_.applied(base::BrokerId(1), pushes_[0].image->version());
    EXPECT_EQ(done_, 4U);
    EXPECT_EQ(pushes_.size(), 1U);
}

TEST_F(SlotTopicsTest, ATopicThatIsThereIsNoFailure) {
    make(SlotKind::kGroup);
    controller_.step();
    controller_.applied(base::BrokerId(1), pushes_[0].image->version());
    make(SlotKind::kGroup);
    controller_.step();
    EXPECT_EQ(done_, 2U);
}

TEST_F(SlotTopicsTest, NobodyWaitsForEver) {
    make(SlotKind::kGroup);
    controller_.step();
    clock_.advance(1min);
    controller_.step();
    EXPECT_EQ(done_, 1U);
}

TEST_F(SlotTopicsTest, OneKindDoesNotWaitForAnother) {
    make(SlotKind::kGroup);
    make(SlotKind::kTransaction);
    controller_.step();
    ASSERT_EQ(pushes_.size(), 1U);
    EXPECT_NE(pushes_[0].image->topic("__transaction_state"), nullptr);
    EXPECT_NE(pushes_[0].image->topic("__consumer_offsets"), nullptr);
}

}  // namespace
}  // namespace kaas::broker
