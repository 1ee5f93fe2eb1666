// Goal: a slot is served exactly while the newest image gives it to this life and its log is open;
// what was settled is there after every end; a log that fails comes back under a new epoch. Method:
// images made by hand, real slot logs on a volume in memory, a clock and a pool that the test
// moves, a host whose slots are lists.

#include "cluster/slot_table.h"

#include "base/clock.h"
#include "base/executor.h"
#include "base/ids.h"
#include "base/uuid.h"
#include "catalog/change.h"
#include "catalog/image.h"
#include "catalog/model.h"
#include "catalog/slot.h"
#include "cluster/reign.h"
#include "cluster/slot_host.h"
#include "cluster/testing_slots.h"
#include "storage/error.h"
#include "storage/log_dir.h"
#include "storage/memory_volume.h"
#include "storage/testing_log.h"
#include "storage/testing_session.h"
#include "storage/volume.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kaas::cluster {
namespace {

using namespace std::chrono_literals;
using storage::Operation;
using storage::testing::HeldExecutor;
using List = ListHost::List;

constexpr SlotId kFirst{catalog::SlotKind::kGroup, base::PartitionId(0)};
constexpr SlotId kSecond{catalog::SlotKind::kGroup, base::PartitionId(1)};

class SlotTableTest : public ::testing::Test {
protected:
    SlotTableTest() {
        EXPECT_TRUE(prepare_cluster(volume_));
        topic_.name = "__consumer_offsets";
        topic_.id = {base::Uuid::random()};
        restart();
    }
    /// Work that is queued keeps its table alive.
    void TearDown() override { pool_.run_all(); }

    /// A new life of the broker: what was queued for the old one never runs.
    void restart(base::Executor* pool = nullptr) {
        table_.reset();
        pool_ = HeldExecutor();
        host_.forget();
        incarnation_ = {base::Uuid::random()};
        broker_ = std::make_unique<storage::testing::Broker>(volume_, clock_);
        SlotTable::Options options{
            .self = base::BrokerId(1),
            .places = {{"main", {&volume_, &broker_->log_dir, incarnation_}}},
            .host = &host_,
            .io_pool = pool != nullptr ? pool : &pool_,
            .clock = &clock_,
            .reports = {},
            .release_patience = 0ms};
        options.reports.applied = [this](catalog::ImageVersion version) {
            applied_.push_back(version);
        };
        options.reports.opened = [this](std::vector<catalog::OpenedEpoch> epochs) {
            opened_.insert(opened_.end(), epochs.begin(), epochs.end());
        };
        options.reports.released = [this](std::vector<catalog::PartitionEpoch> epochs) {
            released_.insert(released_.end(), epochs.begin(), epochs.end());
            if (on_released) on_released(epochs);
        };
        table_ = std::make_unique<SlotTable>(std::move(options));
        catalog::Broker self{.id = base::BrokerId(1)};
        self.sessions.emplace("main", incarnation_);
        change(catalog::BrokerRegistered{self});
    }

    void change(const catalog::Change& change) {
        catalog::ImageEditor editor(*image_);
        auto applied = editor.apply(change);
        ASSERT_TRUE(applied) << applied.error().context;
        image_ = std::move(editor).finish();
    }
    void give(const catalog::Change& what) {
        change(what);
        table_->apply(image_);
        run();
    }
    void run() {
        do {
            pool_.run_all();
            broker_->commit_all();
        } while (pool_.size() > 0);
    }
    void create_slots(int count = 2) {
        catalog::Partition slot;
        slot.replicas = {base::BrokerId(1)};
        slot.leader = {base::BrokerId(1), incarnation_};
        slot.runs = {{base::LeaderEpoch(0), "main"}};
        topic_.partitions.assign(static_cast<std::size_t>(count), slot);
        give(catalog::TopicCreated{topic_});
    }
    void assign(int epoch, std::optional<int> broker = 1) {
        const catalog::Holder holder =
            *broker == 1 ? catalog::Holder{base::BrokerId(1), incarnation_}
                         : catalog::Holder{base::BrokerId(*broker), {base::Uuid::random()}};
        give(catalog::Assigned{
            {{first(), {base::BrokerId(1)}, holder, base::LeaderEpoch(epoch), "main"}}});
    }
    void renew() { give(catalog::LeadershipRenewed{base::BrokerId(1)}); }
    [[nodiscard]] base::TopicPartition first() const { return {topic_.id, base::PartitionId(0)}; }
    void tick(std::chrono::milliseconds later = 0ms) {
        clock_.advance(later);
        table_->tick();
        run();
    }
    /// True when it stands.
    bool add(const std::string& text, SlotId id = kFirst) {
        bool stands = false;
        EXPECT_TRUE(host_.add(id, text, [&](bool durable) { stands = durable; }));
        run();
        return stands;
    }
    /// The slot's log cannot go on.
    void break_log() {
        volume_.fail_nth(Operation::kSync, 1, {.code = storage::ErrorCode::kIo});
        EXPECT_FALSE(add("lost"));
    }
    /// The journal of the first slot's first epoch.
    std::string text_of_first() {
        auto text =
            storage::read_whole(volume_, "__cluster/groups/0/00000000/slot-1.jsonl", 1 << 20);
        return text ? *text : text.error().context;
    }
    void report_opened() {
        if (!opened_.empty()) change(catalog::Opened{std::exchange(opened_, {})});
    }

    /// The session was ended; the broker has taken another one, and the controller knows.
    void live_again() {
        old_ = std::move(broker_);
        old_->session.fenced = true;
        broker_ = std::make_unique<storage::testing::Broker>(volume_, clock_);
        incarnation_ = {base::Uuid::random()};
        table_->replace_place("main", {&volume_, &broker_->log_dir, incarnation_});
        catalog::Broker self{.id = base::BrokerId(1)};
        self.sessions.emplace("main", incarnation_);
        change(catalog::BrokerRegistered{self});
        change(catalog::LeadershipRenewed{base::BrokerId(1)});
        table_->apply(image_);
    }
    void ask_back(int epoch) { give(catalog::AskedBack{{{first(), base::LeaderEpoch(epoch)}}}); }

    /// The controller, for a test that has one.
    std::function<void(const std::vector<catalog::PartitionEpoch>&)> on_released;

    storage::MemoryVolume volume_;
    base::ManualClock clock_;
    base::InlineExecutor home_;
    ListHost host_{home_};
    HeldExecutor pool_;
    base::Incarnation incarnation_;
    std::unique_ptr<storage::testing::Broker> old_;
    std::unique_ptr<storage::testing::Broker> broker_;
    std::unique_ptr<SlotTable> table_;
    catalog::ImagePtr image_ = catalog::ImageEditor("c").finish();
    catalog::Topic topic_;

    std::vector<catalog::ImageVersion> applied_;
    std::vector<catalog::OpenedEpoch> opened_;
    std::vector<catalog::PartitionEpoch> released_;
};

TEST_F(SlotTableTest, AnImageCountsAsAppliedWhenItsSlotsAreServed) {
    catalog::Partition slot;
    slot.replicas = {base::BrokerId(1)};
    slot.leader = {base::BrokerId(1), incarnation_};
    slot.runs = {{base::LeaderEpoch(0), "main"}};
    topic_.partitions = {slot, slot};
    change(catalog::TopicCreated{topic_});
    EXPECT_TRUE(table_->apply(image_));
    EXPECT_FALSE(table_->apply(image_)) << "twice";
    EXPECT_EQ(table_->opening(), 2U);
    EXPECT_TRUE(applied_.empty());
    run();
    EXPECT_EQ(table_->led(), 2U);
    EXPECT_EQ(applied_, std::vector{image_->version()});
    EXPECT_EQ(host_.list(kFirst), List{});
    EXPECT_EQ(opened_.size(), 2U);
    EXPECT_EQ(opened_[0].written, base::kNoLeaderEpoch);
}

TEST_F(SlotTableTest, ASlotThatNobodyWroteToTouchesNoFile) {
    create_slots(1);
    auto files = volume_.list("__cluster/groups/0");
    ASSERT_TRUE(files);
    EXPECT_TRUE(files->empty());
}

TEST_F(SlotTableTest, OrdinaryPartitionsAreNoneOfItsBusiness) {
    topic_.name = "orders";
    create_slots();
    EXPECT_EQ(table_->led() + table_->opening() + table_->offline(), 0U);
    EXPECT_EQ(applied_, std::vector{image_->version()});
}

TEST_F(SlotTableTest, WhatStoodIsThereAfterACleanEnd) {
    create_slots();
    EXPECT_TRUE(add("a"));
    EXPECT_TRUE(add("b", kSecond));
    host_.hold_leaving = true;
    give(catalog::Assigned{{{first(), {}, {base::BrokerId(2), {}}, base::LeaderEpoch(1), "main"}}});
    EXPECT_EQ(host_.list(kFirst), std::nullopt);
    EXPECT_NE(applied_.back(), image_->version()) << "the host has not left it";
    host_.let_leave();
    run();
    EXPECT_EQ(applied_.back(), image_->version());
    EXPECT_EQ(table_->led(), 1U);
    assign(2);
    EXPECT_EQ(host_.list(kFirst), List{"a"});
}

TEST_F(SlotTableTest, WhatStoodIsThereAfterADeath) {
    create_slots();
    EXPECT_TRUE(add("a"));
    tick();
    report_opened();
    EXPECT_TRUE(add("b"));
    volume_.crash();
    restart();
    renew();
    EXPECT_EQ(host_.list(kFirst), (List{"a", "b"}));
    EXPECT_EQ(host_.list(kSecond), List{});
    EXPECT_TRUE(add("c"));
    EXPECT_EQ(table_->offline(), 0U);
}

TEST_F(SlotTableTest, TheControllerHearsWhichEpochWasWritten) {
    create_slots(1);
    opened_.clear();
    tick();
    EXPECT_TRUE(opened_.empty()) << "nothing new";
    EXPECT_TRUE(add("a"));
    tick();
    ASSERT_EQ(opened_.size(), 1U);
    EXPECT_EQ(opened_[0].partition, first());
    EXPECT_EQ(opened_[0].written, base::LeaderEpoch(0));
}

TEST_F(SlotTableTest, AFailedLogGivesItsEpochUpAndComesBack) {
    create_slots();
    EXPECT_TRUE(add("a"));
    break_log();
    tick();
    EXPECT_EQ(host_.list(kFirst), std::nullopt) << "not served any more";
    EXPECT_EQ(table_->offline(), 1U);
    EXPECT_TRUE(table_->is_offline(kFirst));
    EXPECT_FALSE(table_->is_offline(kSecond));
    EXPECT_EQ(table_->led(), 1U) << "the other one goes on";
    ASSERT_EQ(released_.size(), 1U) << "the volume has shown that it takes writes";
    EXPECT_EQ(released_[0], (catalog::PartitionEpoch{first(), base::LeaderEpoch(0)}));
    assign(1);
    EXPECT_EQ(table_->led(), 2U);
    EXPECT_FALSE(table_->is_offline(kFirst));
    EXPECT_EQ(host_.list(kFirst).value_or(List{}).front(), "a");
    EXPECT_TRUE(add("b"));
}

TEST_F(SlotTableTest, AFencedBrokerThatHearsNoControllerLetsNobodyWaitForIt) {
    create_slots();
    EXPECT_FALSE(table_->is_offline(kFirst));
    old_ = std::move(broker_);
    old_->session.fenced = true;
    broker_ = std::make_unique<storage::testing::Broker>(volume_, clock_);
    table_->replace_place("main", {&volume_, &broker_->log_dir, {base::Uuid::random()}});
    run();
    EXPECT_EQ(table_->led() + table_->opening() + table_->offline(), 0U);
    EXPECT_TRUE(table_->is_offline(kFirst))
        << "the assignment names it, and means its earlier life";
}

TEST_F(SlotTableTest, AnEpochThatWasGivenUpIsNeverTakenAgain) {
    create_slots(1);
    break_log();
    tick();
    ASSERT_EQ(released_.size(), 1U);
    change(catalog::ConfigsChanged{topic_.id, {{"segment.ms", "5"}}});  // knows of no release
    table_->apply(image_);
    run();
    EXPECT_EQ(host_.list(kFirst), std::nullopt);
}

TEST_F(SlotTableTest, ASlotThatCannotBeReadStaysOfflineAndTheOthersServe) {
    create_slots();
    EXPECT_TRUE(add("a"));
    restart();
    host_.refusal = {storage::ErrorCode::kCorrupt, "a line that means nothing"};
    renew();
    EXPECT_EQ(table_->offline(), 2U);
    EXPECT_EQ(applied_.back(), image_->version()) << "nobody waits for it";
    tick(1h);
    EXPECT_TRUE(released_.empty()) << "a new epoch would read the same";
}

TEST_F(SlotTableTest, AHostThatRefusesForAPassingReasonIsAskedAgain) {
    host_.refusal = {storage::ErrorCode::kIo, "no memory"};
    create_slots(1);
    EXPECT_EQ(table_->offline(), 1U);
    host_.refusal.reset();
    tick();
    ASSERT_EQ(released_.size(), 1U);
    assign(1);
    EXPECT_EQ(host_.list(kFirst), List{});
}

TEST_F(SlotTableTest, WhatIsMeantForAnEarlierLifeIsNoOrderToThisOne) {
    create_slots(1);
    restart();
    table_->apply(image_);  // not renewed yet
    run();
    EXPECT_EQ(table_->led(), 0U);
    EXPECT_EQ(table_->opening(), 0U);
}

TEST_F(SlotTableTest, SlotsOfAVolumeThatIsNotHereAreOffline) {
    catalog::Partition slot;
    slot.replicas = {base::BrokerId(1)};
    slot.leader = {base::BrokerId(1), incarnation_};
    slot.runs = {{base::LeaderEpoch(0), "elsewhere"}};
    topic_.partitions = {slot};
    give(catalog::TopicCreated{topic_});
    EXPECT_EQ(table_->offline(), 1U);
}

TEST_F(SlotTableTest, ANewEpochThatComesWhileTheOldOneLeavesIsTakenAfterIt) {
    create_slots(1);
    EXPECT_TRUE(add("a"));
    host_.hold_leaving = true;
    assign(1, 2);
    assign(2);
    EXPECT_EQ(host_.list(kFirst), std::nullopt);
    EXPECT_EQ(table_->led(), 0U);
    host_.hold_leaving = false;
    host_.let_leave();
    run();
    EXPECT_EQ(host_.list(kFirst), List{"a"});
    EXPECT_EQ(applied_.back(), image_->version());
}

TEST_F(SlotTableTest, CloseReleasesEverySlotAndLeavesNothingToRecover) {
    base::InlineExecutor at_once;
    restart(&at_once);
    create_slots();
    EXPECT_TRUE(add("a"));
    EXPECT_TRUE(table_->close(0ms));
    EXPECT_EQ(host_.list(kFirst), std::nullopt);
    EXPECT_EQ(host_.list(kSecond), std::nullopt);
    EXPECT_NE(text_of_first().find("\"released\""), std::string::npos);
    change(catalog::ConfigsChanged{topic_.id, {{"segment.ms", "5"}}});
    table_->apply(image_);
    EXPECT_EQ(table_->led() + table_->opening(), 0U) << "later images open nothing";
}

TEST_F(SlotTableTest, AHostThatDoesNotLeaveHoldsUpNobodyForLongerThanAsked) {
    base::InlineExecutor at_once;
    restart(&at_once);
    create_slots(1);
    EXPECT_TRUE(add("a"));
    host_.hold_leaving = true;
    EXPECT_FALSE(table_->close(0ms));
    host_.let_leave();
    EXPECT_EQ(text_of_first().find("\"released\""), std::string::npos)
        << "its log has taken nothing any more";
}

TEST_F(SlotTableTest, AnEpochThatIsAskedBackIsLeftReleasedAndReportedUntilAnImageShowsIt) {
    create_slots();
    EXPECT_TRUE(add("a"));
    const auto before = image_;
    host_.hold_leaving = true;
    ask_back(0);
    EXPECT_EQ(host_.list(kFirst), std::nullopt);
    EXPECT_EQ(table_->led(), 1U);
    tick(1min);
    EXPECT_TRUE(released_.empty()) << "the host has not left it";
    host_.hold_leaving = false;
    host_.let_leave();
    EXPECT_TRUE(released_.empty()) << "its log is open";
    run();
    const catalog::PartitionEpoch released{first(), base::LeaderEpoch(0)};
    EXPECT_EQ(released_, std::vector{released});
    EXPECT_NE(text_of_first().find("\"released\""), std::string::npos);
    tick(1s);
    EXPECT_EQ(released_.size(), 2U) << "the report may have been lost";

    // A controller that has not heard of it.
    catalog::ImageEditor editor(*before);
    editor.begin_epoch(base::ControllerEpoch(5), base::BrokerId(2));
    image_ = std::move(editor).finish();
    table_->apply(image_);
    run();
    EXPECT_EQ(host_.list(kFirst), std::nullopt) << "a release is for ever";
    tick(1s);
    EXPECT_EQ(released_.size(), 3U);
    give(catalog::Released{{released}});
    tick(1min);
    EXPECT_EQ(released_.size(), 3U);
    assign(1);
    EXPECT_EQ(host_.list(kFirst), List{"a"});
}

TEST_F(SlotTableTest, ASlotThatIsAskedBackWhileItOpensIsNotServed) {
    catalog::Partition slot;
    slot.replicas = {base::BrokerId(1)};
    slot.leader = {base::BrokerId(1), incarnation_};
    slot.runs = {{base::LeaderEpoch(0), "main"}};
    topic_.partitions = {slot};
    change(catalog::TopicCreated{topic_});
    table_->apply(image_);
    ask_back(0);
    EXPECT_EQ(host_.list(kFirst), std::nullopt);
    EXPECT_EQ(released_.size(), 1U);
}

TEST_F(SlotTableTest, ADrainGivesSlotsBackInBatches) {
    base::InlineExecutor at_once;
    restart(&at_once);
    create_slots(5);
    std::vector<std::size_t> led;
    on_released = [&](const std::vector<catalog::PartitionEpoch>& epochs) {
        led.push_back(table_->led());
        change(catalog::Released{epochs});
        table_->apply(image_);
    };
    EXPECT_TRUE(table_->drain(2, 1min));
    EXPECT_EQ(released_.size(), 5U);
    ASSERT_GE(led.size(), 3U);
    EXPECT_GE(led.front(), 3U);
    EXPECT_EQ(led.back(), 0U);
    EXPECT_EQ(table_->led() + table_->opening() + table_->offline(), 0U);
    table_.reset();  // before the pool
}

TEST_F(SlotTableTest, ANextBatchWaitsUntilTheLastOneIsKnownToBeGone) {
    base::InlineExecutor at_once;
    restart(&at_once);
    create_slots(5);
    EXPECT_FALSE(table_->drain(2, 0ms)) << "nobody has answered";
    EXPECT_EQ(released_.size(), 2U);
    EXPECT_EQ(table_->led(), 0U) << "the others were closed in the end";
    table_.reset();  // before the pool
}

TEST_F(SlotTableTest, NothingThatAnEarlierLifeHadPendingStandsAndTheNextOneServes) {
    create_slots();
    EXPECT_TRUE(add("a"));
    EXPECT_TRUE(add("b", kSecond));
    std::optional<bool> stands;
    ASSERT_TRUE(host_.add(kFirst, "pending", [&](bool durable) { stands = durable; }));
    live_again();
    EXPECT_EQ(stands, false);
    run();
    EXPECT_EQ(host_.list(kFirst).value_or(List{}).front(), "a");
    EXPECT_EQ(host_.list(kSecond), List{"b"});
    EXPECT_EQ(stands, false);
    EXPECT_TRUE(add("c"));
    EXPECT_EQ(text_of_first().find("\"released\""), std::string::npos);
    tick(1min);
    EXPECT_TRUE(released_.empty()) << "a dead life's epochs are no one's to give";
    EXPECT_EQ(applied_.back(), image_->version());
}

TEST_F(SlotTableTest, TheNextLifeOpensASlotOnlyOnceTheHostHasLeftIt) {
    create_slots(1);
    EXPECT_TRUE(add("a"));
    host_.hold_leaving = true;
    live_again();
    run();
    EXPECT_EQ(host_.list(kFirst), std::nullopt);
    EXPECT_EQ(table_->led(), 0U);
    host_.hold_leaving = false;
    host_.let_leave();
    run();
    EXPECT_EQ(host_.list(kFirst), List{"a"});
    EXPECT_EQ(applied_.back(), image_->version());
}

TEST_F(SlotTableTest, ARestartWhileASlotIsAskedBackReportsNothingOfTheOldLife) {
    create_slots(1);
    host_.hold_leaving = true;
    ask_back(0);
    live_again();
    host_.hold_leaving = false;
    host_.let_leave();
    run();
    EXPECT_EQ(host_.list(kFirst), List{});
    EXPECT_TRUE(released_.empty());
}

TEST_F(SlotTableTest, ASlotThatOpensInAnEarlierLifeDoesNotHoldUpTheNext) {
    create_slots(1);
    EXPECT_TRUE(add("a"));
    assign(1, 2);
    change(catalog::Assigned{{{first(),
                               {base::BrokerId(1)},
                               {base::BrokerId(1), incarnation_},
                               base::LeaderEpoch(2),
                               "main"}}});
    bool hung = false;
    volume_.set_hook([&](const storage::MemoryVolume::Step&) -> std::optional<storage::Fault> {
        if (std::exchange(hung, true)) return std::nullopt;
        live_again();
        old_->session.fenced = false;  // its check came before the mark
        run();
        EXPECT_EQ(host_.list(kFirst), List{"a"}) << "while the old one hangs";
        return std::nullopt;
    });
    table_->apply(image_);
    run();
    EXPECT_TRUE(hung);
    EXPECT_EQ(host_.list(kFirst), List{"a"});
    EXPECT_EQ(table_->led(), 1U);
    EXPECT_TRUE(add("b"));
}

TEST_F(SlotTableTest, ASlotWhoseVolumeIsLostIsOffline) {
    create_slots(1);
    table_->remove_place("main");
    run();
    EXPECT_EQ(table_->led(), 0U);
    EXPECT_TRUE(table_->is_offline(kFirst));
    EXPECT_EQ(host_.list(kFirst), std::nullopt);
}

TEST_F(SlotTableTest, AStalledVolumeFailsWhoWaits) {
    create_slots(1);
    EXPECT_TRUE(add("a"));
    std::optional<bool> stands;
    ASSERT_TRUE(host_.add(kFirst, "b", [&](bool durable) { stands = durable; }));
    bool hung = false;
    volume_.set_hook([&](const storage::MemoryVolume::Step& step) -> std::optional<storage::Fault> {
        if (step.operation != Operation::kSync || std::exchange(hung, true)) return std::nullopt;
        clock_.advance(1min);
        table_->tick();
        EXPECT_EQ(stands, false);
        return std::nullopt;
    });
    run();
    EXPECT_TRUE(hung);
}

}  // namespace
}  // namespace kaas::cluster
