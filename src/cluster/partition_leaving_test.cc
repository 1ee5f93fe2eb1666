// Goal: what is asked back, drained or lost to a new life is never served, written or acknowledged
// under its old epoch again, and the controller hears of a release until it has acted. Method: as
// partition_table_test.cc.

#include "base/executor.h"
#include "base/ids.h"
#include "base/uuid.h"
#include "catalog/change.h"
#include "catalog/image.h"
#include "catalog/model.h"
#include "catalog/topic_name.h"
#include "cluster/drain_turn.h"
#include "cluster/partition_table.h"
#include "cluster/partition_table_fixture.h"
#include "cluster/place.h"
#include "cluster/reign.h"
#include "cluster/tenancy.h"
#include "storage/error.h"
#include "storage/log_dir.h"
#include "storage/memory_volume.h"
#include "storage/partition_log.h"
#include "storage/testing_log.h"
#include "storage/volume.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kaas::cluster {
namespace {

using namespace std::chrono_literals;
using storage::testing::Answer;
using Epochs = std::vector<catalog::PartitionEpoch>;

class PartitionLeavingTest : public PartitionTableTest {
protected:
    [[nodiscard]] catalog::PartitionEpoch epoch(int number, int partition = 0) const {
        return {{topic_.id, base::PartitionId(partition)}, base::LeaderEpoch(number)};
    }
    /// Several partitions of one topic, all led here.
    void create(std::size_t count) {
        topic_.partitions.assign(count, topic_.partitions.front());
        give(catalog::TopicCreated{topic_});
    }
    [[nodiscard]] std::string manifest(int number) {
        const auto path = catalog::topic_directory(topic_.name, topic_.id) + "/0/0000000" +
                          std::to_string(number) + "/manifest-1.jsonl";
        auto text = storage::read_whole(volume_, path, 1 << 20);
        return text ? *text : text.error().context;
    }
    [[nodiscard]] bool has_last_line(int number) {
        return manifest(number).contains("\"released\"");
    }
    /// The session on "main" was ended; the broker has taken another one.
    storage::testing::Broker& live_again() {
        broker_.session.fenced = true;
        incarnation_ = {base::Uuid::random()};
        next_ = std::make_unique<storage::testing::Broker>(volume_, clock_);
        table_->replace_place("main", {&volume_, &next_->log_dir, incarnation_});
        return *next_;
    }
    void register_again() {
        catalog::Broker self{.id = base::BrokerId(1)};
        self.sessions.emplace("main", incarnation_);
        change(catalog::BrokerRegistered{self});
        change(catalog::LeadershipRenewed{base::BrokerId(1)});
    }

    std::unique_ptr<storage::testing::Broker> next_;
};

TEST_F(PartitionLeavingTest, AskedBackEpochIsReleasedThenReported) {
    give(catalog::TopicCreated{topic_});
    auto log = find().log;
    ASSERT_TRUE(append(*log).good());
    change(catalog::AskedBack{{epoch(0)}});
    push();
    EXPECT_EQ(find().state, Hosting::kNotHere) << "at once";
    EXPECT_EQ(find().log, nullptr);
    EXPECT_TRUE(released_.empty()) << "its log is not closed yet";
    EXPECT_FALSE(has_last_line(0));
    pool_.run_all();
    EXPECT_TRUE(has_last_line(0)) << manifest(0);
    EXPECT_EQ(log->failure()->code, storage::ErrorCode::kClosed);
    EXPECT_EQ(released_, Epochs{epoch(0)});
    EXPECT_EQ(applied_.back(), image_->version());
}

TEST_F(PartitionLeavingTest, ReleaseIsSaidAgainUntilAnImageShowsIt) {
    give(catalog::TopicCreated{topic_});
    give(catalog::AskedBack{{epoch(0)}});
    ASSERT_EQ(released_.size(), 1U);
    tick(999ms);
    EXPECT_EQ(released_.size(), 1U);
    tick(1ms);
    EXPECT_EQ(released_, (Epochs{epoch(0), epoch(0)}));
    give(catalog::ConfigsChanged{topic_.id, {{"segment.ms", "5"}}});  // knows of no release
    for (int second = 0; second < 10; ++second) tick(1s);
    EXPECT_EQ(released_.size(), 12U);
    give(catalog::Released{{epoch(0)}});
    for (int second = 0; second < 10; ++second) tick(1s);
    EXPECT_EQ(released_.size(), 12U);
    assign(1, mine());
    EXPECT_EQ(find().state, Hosting::kServing);
}

TEST_F(PartitionLeavingTest, ReleaseIsNotSaidAgainOnceAnotherLeads) {
    give(catalog::TopicCreated{topic_});
    give(catalog::AskedBack{{epoch(0)}});
    assign(1, {base::BrokerId(2), {base::Uuid::random()}});
    for (int second = 0; second < 10; ++second) tick(1s);
    EXPECT_EQ(released_.size(), 1U);
}

TEST_F(PartitionLeavingTest, ReleaseOfAFailedLogIsSaidAgainAlsoAfterAnotherImage) {
    give(catalog::TopicCreated{topic_});
    volume_.fail_nth(storage::Operation::kSync, 1, {});
    EXPECT_FALSE(append(*find().log).good());
    tick(0s);
    ASSERT_EQ(released_, Epochs{epoch(0)});
    give(catalog::ConfigsChanged{topic_.id, {{"segment.ms", "5"}}});
    tick(1s);
    EXPECT_EQ(released_, (Epochs{epoch(0), epoch(0)}));
}

TEST_F(PartitionLeavingTest, AskedBackEpochIsNeverServedAgain) {
    give(catalog::TopicCreated{topic_});
    const auto before = image_;
    give(catalog::AskedBack{{epoch(0)}});
    table_->apply(before);  // a push that comes late
    pool_.run_all();
    EXPECT_EQ(find().state, Hosting::kNotHere);

    // A controller that knows nothing of it: its predecessor's last line was lost.
    catalog::ImageEditor editor(*before);
    editor.begin_epoch(base::ControllerEpoch(5), base::BrokerId(2));
    image_ = std::move(editor).finish();
    released_.clear();
    push();
    pool_.run_all();
    tick(1s);
    EXPECT_EQ(find().state, Hosting::kNotHere);
    EXPECT_EQ(released_, Epochs{epoch(0)});
    assign(1, mine());
    EXPECT_EQ(find().state, Hosting::kServing);
}

TEST_F(PartitionLeavingTest, EpochThatIsAskedBackWhileItOpensIsNotServed) {
    change(catalog::TopicCreated{topic_});
    push();
    change(catalog::AskedBack{{epoch(0)}});
    push();
    EXPECT_TRUE(released_.empty());
    pool_.run_all();
    EXPECT_EQ(find().state, Hosting::kNotHere);
    EXPECT_EQ(released_, Epochs{epoch(0)});
    EXPECT_EQ(applied_.size(), 2U);
}

TEST_F(PartitionLeavingTest, EpochThatComesAskedBackIsReleasedUnopened) {
    change(catalog::TopicCreated{topic_});
    change(catalog::AskedBack{{epoch(0)}});
    push();
    pool_.run_all();
    EXPECT_EQ(released_, Epochs{epoch(0)});
    EXPECT_TRUE(opened_.empty());
    EXPECT_EQ(find().state, Hosting::kNotHere);
}

TEST_F(PartitionLeavingTest, NextEpochThatComesAskedBackIsReleasedWithTheOneInHand) {
    give(catalog::TopicCreated{topic_});
    change(
        catalog::Assigned{{{first(), {base::BrokerId(1)}, mine(), base::LeaderEpoch(1), "main"}}});
    give(catalog::AskedBack{{epoch(1)}});
    EXPECT_EQ(released_, Epochs{epoch(1)});
    EXPECT_EQ(opened_.size(), 1U);
}

TEST_F(PartitionLeavingTest, EpochWhoseLogHasFailedIsReleasedWhenAskedBack) {
    give(catalog::TopicCreated{topic_});
    volume_.set_hook([](const auto& step) -> std::optional<storage::Fault> {
        if (step.operation != storage::Operation::kWrite) return std::nullopt;
        return storage::Fault{storage::ErrorCode::kNoSpace};
    });
    EXPECT_FALSE(append(*find().log).good());
    tick(1s);
    ASSERT_EQ(find().state, Hosting::kOffline);
    ASSERT_TRUE(released_.empty()) << "the volume takes no writes";
    give(catalog::AskedBack{{epoch(0)}});
    EXPECT_EQ(released_, Epochs{epoch(0)});
    EXPECT_EQ(find().state, Hosting::kNotHere);
    EXPECT_EQ(find().log, nullptr) << "another may write the next epoch";
}

TEST_F(PartitionLeavingTest, NothingIsReportedWhileTheReleaseHangs) {
    give(catalog::TopicCreated{topic_});
    ASSERT_TRUE(append(*find().log).good());
    int hung = 0;
    volume_.set_hook([&](const auto& step) -> std::optional<storage::Fault> {
        if (step.operation != storage::Operation::kSync) return std::nullopt;
        ++hung;
        clock_.advance(1min);
        table_->tick();
        EXPECT_TRUE(released_.empty());
        return std::nullopt;
    });
    give(catalog::AskedBack{{epoch(0)}});
    volume_.set_hook(nullptr);
    EXPECT_GT(hung, 0);
    EXPECT_EQ(released_, Epochs{epoch(0)});
}

TEST_F(PartitionLeavingTest, MoveIsSaidAgainUntilTheAssignmentFollows) {
    storage::MemoryVolume fast;
    ASSERT_TRUE(prepare_volume(fast));
    storage::testing::Broker on_fast(fast, clock_);
    const base::Incarnation there{base::Uuid::random()};
    table_->replace_place("fast", {&fast, &on_fast.log_dir, there});
    give(catalog::TopicCreated{topic_});
    ASSERT_TRUE(append(*find().log).good());
    const auto move = [&] {
        ASSERT_EQ(table_->move(first(), "fast"), PartitionTable::Move::kBegun);
        pool_.run_all();
    };
    move();
    ASSERT_EQ(moved_.size(), 1U);
    tick(1s);
    ASSERT_EQ(moved_.size(), 2U);
    EXPECT_EQ(moved_[1].epoch, base::LeaderEpoch(0));
    EXPECT_EQ(moved_[1].volume, "fast");
    EXPECT_TRUE(released_.empty());
    give(catalog::Assigned{{{first(),
                             {base::BrokerId(1)},
                             {base::BrokerId(1), there},
                             base::LeaderEpoch(1),
                             "fast"}}});
    ASSERT_EQ(find().state, Hosting::kServing);
    tick(1s);
    EXPECT_EQ(moved_.size(), 2U);

    // The controller would rather have another broker lead.
    assign(2, mine());
    move();
    ASSERT_EQ(moved_.size(), 3U);
    give(catalog::AskedBack{{epoch(2)}});
    tick(1s);
    EXPECT_EQ(moved_.size(), 3U);
    EXPECT_EQ(released_, Epochs{epoch(2)});
    table_.reset();  // before what is on the other volume
}

// ---- a new life on a volume -------------------------------------------------------------------

TEST_F(PartitionLeavingTest, NothingThatAnEarlierLifeHadPendingIsAcknowledged) {
    Answer pending;
    const auto cycle = write_half_a_cycle(pending);
    auto old = find().log;
    auto& now = live_again();
    EXPECT_TRUE(pending.value && !pending.value->has_value()) << "the producer need not wait";
    EXPECT_EQ(find().state, Hosting::kNotHere) << "nobody has assigned it to this life";
    register_again();
    push();
    pool_.run_all();
    ASSERT_EQ(find().state, Hosting::kServing);
    EXPECT_EQ(find().log->epoch(), base::LeaderEpoch(1));
    Answer fresh;
    ASSERT_TRUE(find().log->append(
        storage::testing::to_append(storage::testing::make_batch({}), storage::Acks::kAll,
                                    broker_.executor, fresh.receiver())));
    now.commit_all();
    EXPECT_TRUE(fresh.good()) << "on the new life's log dir";
    cycle->sync();
    cycle->confirm();
    cycle->settle();
    EXPECT_FALSE(pending.good());
    EXPECT_EQ(old->failure()->code, storage::ErrorCode::kFenced);
    EXPECT_FALSE(has_last_line(0));
    for (int second = 0; second < 3; ++second) tick(1s);
    EXPECT_TRUE(released_.empty()) << "a dead life's epochs are no one's to give";
}

TEST_F(PartitionLeavingTest, ImageThatNamesANewLifeMayComeBeforeIt) {
    give(catalog::TopicCreated{topic_});
    const auto old = incarnation_;
    incarnation_ = {base::Uuid::random()};
    register_again();
    push();
    pool_.run_all();
    EXPECT_EQ(find().state, Hosting::kNotHere);
    const auto fresh = std::exchange(incarnation_, old);
    next_ = std::make_unique<storage::testing::Broker>(volume_, clock_);
    table_->replace_place("main", {&volume_, &next_->log_dir, fresh});
    pool_.run_all();
    EXPECT_EQ(find().state, Hosting::kServing);
}

TEST_F(PartitionLeavingTest, LogThatOpensInAnEarlierLifeDoesNotHoldUpTheNext) {
    broker_.session.fenced = false;
    topic_.partitions[0].leader_epoch = base::LeaderEpoch(1);
    bool hung = false;
    volume_.set_hook([&](const auto& step) -> std::optional<storage::Fault> {
        if (!step.path.starts_with("orders.") || std::exchange(hung, true)) return std::nullopt;
        live_again();
        register_again();
        push();
        pool_.run_all();
        EXPECT_EQ(find().state, Hosting::kServing) << "while the old one hangs";
        return std::nullopt;
    });
    give(catalog::TopicCreated{topic_});
    EXPECT_TRUE(hung);
    ASSERT_EQ(find().state, Hosting::kServing);
    EXPECT_EQ(find().log->epoch(), base::LeaderEpoch(2)) << "not what came late";
    EXPECT_EQ(opened_.size(), 1U);
}

TEST_F(PartitionLeavingTest, ReleaseThatHangsInAnEarlierLifeIsNeverReported) {
    give(catalog::TopicCreated{topic_});
    ASSERT_TRUE(append(*find().log).good());
    bool hung = false;
    volume_.set_hook([&](const auto& step) -> std::optional<storage::Fault> {
        if (step.operation != storage::Operation::kSync || std::exchange(hung, true))
            return std::nullopt;
        live_again();
        register_again();
        push();
        pool_.run_all();
        EXPECT_EQ(find().state, Hosting::kServing) << "while the old one hangs";
        return std::nullopt;
    });
    give(catalog::AskedBack{{epoch(0)}});
    EXPECT_TRUE(hung);
    EXPECT_EQ(find().state, Hosting::kServing);
    EXPECT_EQ(find().log->epoch(), base::LeaderEpoch(1));
    EXPECT_TRUE(released_.empty());
    EXPECT_EQ(applied_.back(), image_->version());
}

TEST_F(PartitionLeavingTest, OtherVolumesAndMissingOnes) {
    storage::MemoryVolume fast;
    ASSERT_TRUE(prepare_volume(fast));
    storage::testing::Broker on_fast(fast, clock_);
    const base::Incarnation there{base::Uuid::random()};
    topic_.partitions.push_back(topic_.partitions[0]);
    topic_.partitions[1].leader.incarnation = there;
    topic_.partitions[1].runs = {{base::LeaderEpoch(0), "fast"}};
    give(catalog::TopicCreated{topic_});
    const auto second = [&] { return new_reader().find(topic_.id, base::PartitionId(1)); };
    EXPECT_EQ(second().state, Hosting::kOffline) << "its volume is missing";
    table_->replace_place("fast", {&fast, &on_fast.log_dir, there});
    pool_.run_all();
    ASSERT_EQ(second().state, Hosting::kServing);

    const auto log = second().log;
    live_again();
    EXPECT_EQ(second().log, log) << "its volume goes on";
    EXPECT_FALSE(log->failure());
    table_->remove_place("fast");
    EXPECT_EQ(second().state, Hosting::kOffline);
    EXPECT_EQ(second().log, nullptr);
    EXPECT_EQ(log->failure()->code, storage::ErrorCode::kFenced);
    tick(1s);
    EXPECT_TRUE(released_.empty());
    table_.reset();  // before what is on the other volume
}

TEST_F(PartitionLeavingTest, DeletionThatHangsInAnEarlierLifeEnds) {
    give(catalog::TopicCreated{topic_});
    ASSERT_TRUE(append(*find().log).good());
    change(catalog::TopicDeleted{topic_.id});
    push();
    live_again();
    pool_.run_all();
    tick(1s);
    EXPECT_EQ(reclaimed_, std::vector{topic_.id});
}

// ---- a drain ----------------------------------------------------------------------------------

class PartitionDrainTest : public PartitionLeavingTest {
protected:
    PartitionDrainTest() {
        make_table(at_once_);
        push();
    }
    void TearDown() override { table_.reset(); }

    base::InlineExecutor at_once_;
};

TEST_F(PartitionDrainTest, GivesBackInBatchesWhileTheOthersServe) {
    create(5);
    std::vector<std::size_t> serving;  // whenever the controller has heard of a whole batch
    Epochs batch;
    on_released = [&](const Epochs& epochs) {
        batch.insert(batch.end(), epochs.begin(), epochs.end());
        const auto left = table_->serving();
        EXPECT_GE(left + released_.size(), 5U) << "nothing is closed and unreported";
        if (batch.size() < std::min<std::size_t>(2, 5 - (released_.size() - batch.size()))) return;
        serving.push_back(left);
        change(catalog::Released{std::exchange(batch, {})});
        push();
    };
    EXPECT_TRUE(table_->drain(2, 1min));
    EXPECT_EQ(serving, (std::vector<std::size_t>{3, 1, 0}));
    EXPECT_EQ(released_.size(), 5U);
}

TEST_F(PartitionDrainTest, NextBatchWaitsUntilTheLastOneIsKnownToBeGone) {
    create(5);
    on_released = [&](const Epochs&) { EXPECT_GE(table_->serving(), 3U); };
    EXPECT_FALSE(table_->drain(2, 0ms)) << "nobody has answered";
    EXPECT_EQ(released_.size(), 2U);
    EXPECT_EQ(table_->serving(), 0U) << "the others were closed in the end";
}

TEST_F(PartitionDrainTest, WhatIsAssignedMeanwhileIsGivenBackAsWell) {
    create(2);
    bool assigned = false;
    on_released = [&](const Epochs& epochs) {
        change(catalog::Released{epochs});
        const bool is_first = !std::exchange(assigned, true);
        if (is_first) {
            change(catalog::PartitionsAdded{topic_.id, {topic_.partitions.front()}});
            change(catalog::Assigned{{{epochs.front().partition,
                                       {base::BrokerId(1)},
                                       mine(),
                                       base::LeaderEpoch(1),
                                       "main"}}});
        }
        push();
        if (!is_first) return;
        EXPECT_EQ(released_.size(), 2U) << "the new one; the other was here just now";
        clock_.advance(1s);
        table_->tick();
    };
    opened_.clear();
    EXPECT_TRUE(table_->drain(1, 1min));
    EXPECT_TRUE(opened_.empty()) << "nothing new is opened";
    EXPECT_EQ(released_, (Epochs{epoch(0), epoch(0, 2), epoch(1), epoch(0, 1)}));
}

TEST(DrainTurn, VolumeThatHangsHoldsUpOnlyItsOwn) {
    const auto led = [](const std::string& volume) {
        Tenancy tenancy;
        EXPECT_TRUE(tenancy.aim(Tenure{base::LeaderEpoch(1), volume, {}}));
        EXPECT_EQ(tenancy.begin(), Tenancy::Step::kOpen);
        tenancy.opened({});
        return tenancy;
    };
    std::vector<Tenancy> all{led("well"), led("hangs"), led("hangs"), led("well"), led("well")};
    const auto next = [&] {
        DrainTurn<std::size_t> turn(1);
        for (std::size_t i = 0; i < all.size(); ++i) turn.see(i, all[i]);
        EXPECT_FALSE(turn.is_over());
        auto chosen = turn.to_give_back();
        for (auto i : chosen) all[i].give_back();
        return chosen;
    };
    EXPECT_EQ(next(), (std::vector<std::size_t>{1, 0}));
    EXPECT_EQ(next(), std::vector<std::size_t>{}) << "both close";
    ASSERT_EQ(all[0].begin(), Tenancy::Step::kClose);
    all[0].closed();
    EXPECT_EQ(next(), std::vector<std::size_t>{}) << "no image shows it";
    all[0].aim(std::nullopt);
    EXPECT_EQ(next(), std::vector<std::size_t>{3});
}

}  // namespace
}  // namespace kaas::cluster
