// Goal: this broker has open what the newest image gives to its present life, and nothing else:
// never an epoch that it gave up, never a log that failed, never the files of a deleted topic.
// Method: images made by hand, real logs on a volume in memory, a clock and a pool that the test
// moves.

#include "cluster/partition_table.h"

#include "base/bytes.h"
#include "base/executor.h"
#include "base/ids.h"
#include "base/uuid.h"
#include "catalog/change.h"
#include "catalog/image.h"
#include "catalog/topic_name.h"
#include "cluster/partition_table_fixture.h"
#include "cluster/topic_reclaimer.h"
#include "storage/journal.h"
#include "storage/testing_log.h"
#include "storage/testing_session.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace kaas::cluster {
namespace {

using namespace std::chrono_literals;
using storage::testing::Answer;
using storage::testing::make_batch;
using storage::testing::to_append;

TEST_F(PartitionTableTest, ImageIsAppliedOnceItsLogsAreOpen) {
    change(catalog::TopicCreated{topic_});
    push();
    EXPECT_EQ(find().state, Hosting::kOpening);
    EXPECT_EQ(table_->opening(), 1U);
    EXPECT_TRUE(applied_.empty());
    pool_.run_all();
    EXPECT_EQ(find().state, Hosting::kServing);
    EXPECT_NE(new_reader().find("orders", base::PartitionId(0)).log, nullptr);
    EXPECT_EQ(applied_, std::vector{image_->version()});
    EXPECT_EQ(opened_, (std::vector<catalog::OpenedEpoch>{{first(), base::LeaderEpoch(0)}}));
}

TEST_F(PartitionTableTest, ImageOfASucceededControllerIsRefused) {
    const auto first = image_;
    change(catalog::TopicCreated{topic_});
    EXPECT_TRUE(table_->apply(image_));
    EXPECT_FALSE(table_->apply(first));
    EXPECT_FALSE(table_->apply(image_)) << "it comes twice";
    EXPECT_EQ(table_->image(), image_);
    EXPECT_EQ(new_reader().image().version(), image_->version());
    EXPECT_EQ(announced_, std::vector{image_->version()});
}

TEST_F(PartitionTableTest, SlowLogHoldsUpOnlyItsOwnImage) {
    change(catalog::TopicCreated{topic_});
    push();
    auto other = topic_;
    other.name = "other";
    other.id = {base::Uuid::random()};
    other.partitions[0].leader = {base::BrokerId(2), {base::Uuid::random()}};
    change(catalog::TopicCreated{other});
    push();
    EXPECT_EQ(applied_, std::vector{image_->version()}) << "nothing in it was for this broker";
    pool_.run_all();
    EXPECT_EQ(applied_.size(), 2U);
}

TEST_F(PartitionTableTest, OthersPartitionsAreKnownButNotHere) {
    topic_.partitions.push_back(topic_.partitions[0]);
    topic_.partitions[1].leader = {base::BrokerId(2), {base::Uuid::random()}};
    give(catalog::TopicCreated{topic_});
    auto reader = new_reader();
    EXPECT_EQ(reader.find("orders", base::PartitionId(1)).state, Hosting::kNotHere);
    EXPECT_EQ(reader.find("orders", base::PartitionId(2)).state, Hosting::kUnknown);
    EXPECT_EQ(reader.find("orders", base::PartitionId(-1)).state, Hosting::kUnknown);
    EXPECT_EQ(reader.find(base::TopicId{}, base::PartitionId(0)).state, Hosting::kUnknown);
}

TEST_F(PartitionTableTest, WhatAnEarlierLifeWasGivenIsNoOrder) {
    topic_.partitions[0].leader.incarnation = {base::Uuid::random()};
    give(catalog::TopicCreated{topic_});
    EXPECT_EQ(find().state, Hosting::kNotHere);
    assign(1, mine());
    EXPECT_EQ(find().state, Hosting::kServing);
}

TEST_F(PartitionTableTest, MovedAwayLogIsReleased) {
    give(catalog::TopicCreated{topic_});
    auto log = find().log;
    assign(1, {base::BrokerId(2), {base::Uuid::random()}});
    EXPECT_EQ(find().state, Hosting::kNotHere);
    Answer refused;
    EXPECT_FALSE(log->append(
        to_append(make_batch({}), storage::Acks::kAll, broker_.executor, refused.receiver())));
}

TEST_F(PartitionTableTest, LogsAreLookedThroughForOldSegmentsAndTheFilesFollow) {
    give(catalog::TopicCreated{topic_});
    auto log = find().log;
    append(*log);
    clock_.advance(59s);
    tick(0s);  // the first look
    broker_.commit_all();
    EXPECT_EQ(log->view().log_start, base::Offset{0}) << "too young";
    tick(19s);
    broker_.commit_all();
    EXPECT_EQ(log->view().log_start, base::Offset{0}) << "between two looks";
    tick(1s);
    broker_.commit_all();
    EXPECT_EQ(log->view().log_start, base::Offset{1});
    const auto file =
        storage::PartitionPaths{catalog::topic_directory(topic_.name, topic_.id) + "/0"}.file(
            {.epoch = base::LeaderEpoch{0}, .base = base::Offset{0}}, ".log");
    tick(4s);
    EXPECT_TRUE(volume_.open(file, storage::OpenMode::kRead));
    tick(1s);
    EXPECT_FALSE(volume_.open(file, storage::OpenMode::kRead));
}

TEST_F(PartitionTableTest, IdleProducersAreForgottenWhenItIsTimeToLook) {
    give(catalog::TopicCreated{topic_});
    auto log = find().log;
    Answer answer;
    ASSERT_TRUE(
        log->append(to_append(make_batch({.producer_id = 7, .producer_epoch = 0, .sequence = 0}),
                              storage::Acks::kAll, broker_.executor, answer.receiver())));
    broker_.commit_all();
    clock_.advance(24h - 30s);
    tick(0s);
    EXPECT_EQ(log->producers().size(), 1U);
    tick(29s);
    EXPECT_EQ(log->producers().size(), 1U);
    tick(1s);
    EXPECT_TRUE(log->producers().empty());
}

TEST_F(PartitionTableTest, EpochThatWasGivenUpIsNeverTakenAgain) {
    give(catalog::TopicCreated{topic_});
    const auto before = image_;
    assign(1, {base::BrokerId(2), {base::Uuid::random()}});
    table_->apply(before);  // a push that comes late
    pool_.run_all();
    EXPECT_EQ(find().state, Hosting::kNotHere);
    table_->apply(image_);
    assign(2, mine());
    EXPECT_EQ(find().state, Hosting::kServing);
    EXPECT_EQ(find().log->epoch(), base::LeaderEpoch(2));
}

TEST_F(PartitionTableTest, NewerEpochReplacesTheLog) {
    give(catalog::TopicCreated{topic_});
    ASSERT_TRUE(append(*find().log).good());
    assign(1, mine());
    ASSERT_EQ(find().state, Hosting::kServing);
    EXPECT_EQ(find().log->epoch(), base::LeaderEpoch(1));
    EXPECT_EQ(find().log->latest(storage::Isolation::kReadUncommitted)->offset, base::Offset(1));
}

TEST_F(PartitionTableTest, FirstWriteIsReported) {
    give(catalog::TopicCreated{topic_});
    opened_.clear();
    tick(1s);
    EXPECT_TRUE(opened_.empty()) << "nothing is new";
    ASSERT_TRUE(append(*find().log).good());
    tick(1s);
    EXPECT_EQ(
        opened_,
        (std::vector<catalog::OpenedEpoch>{{first(), base::LeaderEpoch(0), base::LeaderEpoch(0)}}));
}

TEST_F(PartitionTableTest, FailedLogIsGivenUpAndComesBackUnderTheNextEpoch) {
    give(catalog::TopicCreated{topic_});
    ASSERT_TRUE(append(*find().log).good());
    volume_.fail_nth(storage::Operation::kSync, 1, {});
    auto log = find().log;
    EXPECT_FALSE(append(*log).good());
    tick(0s);
    EXPECT_EQ(find().state, Hosting::kOffline);
    EXPECT_EQ(table_->offline(), 1U);
    ASSERT_EQ(released_, (std::vector<catalog::PartitionEpoch>{{first(), base::LeaderEpoch(0)}}));
    assign(1, mine());
    ASSERT_EQ(find().state, Hosting::kServing);
    EXPECT_GE(find().log->latest(storage::Isolation::kReadUncommitted)->offset, base::Offset(1))
        << "what was acknowledged; recovery may have found the other batch too";
    EXPECT_TRUE(append(*find().log).good());
}

TEST_F(PartitionTableTest, LogThatDoesNotOpenIsTriedAgainLaterAndLater) {
    give(catalog::TopicCreated{topic_});
    ASSERT_TRUE(append(*find().log).good());
    std::chrono::milliseconds waited{0};
    for (int epoch = 1; epoch <= 3; ++epoch) {
        volume_.set_hook([](const auto& step) -> std::optional<storage::Fault> {
            if (step.operation == storage::Operation::kOpen) return storage::Fault{};
            return std::nullopt;
        });
        assign(epoch, mine());
        volume_.set_hook(nullptr);
        ASSERT_EQ(find().state, Hosting::kOffline);
        released_.clear();
        std::chrono::milliseconds pause{0};
        while (released_.empty()) {
            ASSERT_LT(pause, 1min) << "never tried again";
            tick(100ms);
            pause += 100ms;
        }
        EXPECT_GT(pause, waited);
        waited = pause;
    }
    assign(4, mine());
    EXPECT_EQ(find().state, Hosting::kServing);
}

TEST_F(PartitionTableTest, NoEpochIsGivenUpWhileTheVolumeTakesNoWrites) {
    give(catalog::TopicCreated{topic_});
    ASSERT_TRUE(append(*find().log).good());
    std::uint64_t trials = 0;
    volume_.set_hook([&](const auto& step) -> std::optional<storage::Fault> {
        if (step.operation == storage::Operation::kCreate) ++trials;
        if (step.operation != storage::Operation::kWrite) return std::nullopt;
        return storage::Fault{storage::ErrorCode::kNoSpace};
    });
    EXPECT_FALSE(append(*find().log).good());
    for (int second = 0; second < 600; ++second) tick(1s);
    EXPECT_TRUE(released_.empty());
    EXPECT_EQ(find().state, Hosting::kOffline);
    ASSERT_NE(find().log, nullptr) << "what it has is read on";
    EXPECT_EQ(find().log->latest(storage::Isolation::kReadUncommitted)->offset, base::Offset(1));
    EXPECT_GT(trials, 500U);
    EXPECT_LT(trials, 700U) << "one a second, however many partitions";
    volume_.set_hook(nullptr);
    tick(1s);
    ASSERT_EQ(released_, (std::vector<catalog::PartitionEpoch>{{first(), base::LeaderEpoch(0)}}));
    EXPECT_EQ(find().log, nullptr) << "the epoch is given up: another broker may write the next";
    assign(1, mine());
    EXPECT_TRUE(append(*find().log).good());
    EXPECT_TRUE(std::ranges::none_of(
        *volume_.list(""), [](const std::string& name) { return name.starts_with("kaas.probe"); }));
}

TEST_F(PartitionTableTest, EpochsThatFailOnAVolumeThatTakesWritesComeSeldom) {
    give(catalog::TopicCreated{topic_});
    ASSERT_TRUE(append(*find().log).good());
    volume_.set_hook([&](const auto& step) -> std::optional<storage::Fault> {
        const bool log = step.path.ends_with(".log");
        if (!log || step.operation != storage::Operation::kWrite) return std::nullopt;
        return storage::Fault{storage::ErrorCode::kNoSpace};
    });
    int epoch = 0;
    for (int second = 0; second < 600; ++second) {
        if (find().state == Hosting::kServing) append(*find().log);
        tick(1s);
        if (released_.empty() || released_.back().epoch < base::LeaderEpoch(epoch)) continue;
        assign(++epoch, mine());
    }
    EXPECT_GT(epoch, 10);
    EXPECT_LT(epoch, 30) << "a minute of doubling, then two a minute";
}

TEST_F(PartitionTableTest, AVolumeThatFailsNowAndThenIsTriedAsSoonEachTime) {
    give(catalog::TopicCreated{topic_});
    for (int epoch = 0; epoch < 6; ++epoch) {
        ASSERT_TRUE(append(*find().log).good());
        for (int second = 0; second < 3; ++second) tick(1s);
        volume_.fail_nth(storage::Operation::kWrite, 1, {storage::ErrorCode::kNoSpace});
        EXPECT_FALSE(append(*find().log).good());
        int seconds = 0;
        while (released_.empty() || released_.back().epoch < base::LeaderEpoch(epoch)) {
            ASSERT_LE(++seconds, 2) << "of epoch " << epoch;
            tick(1s);
        }
        assign(epoch + 1, mine());
    }
}

TEST_F(PartitionTableTest, EpochsOfAPartitionWhoseFilesAreGoneComeSeldom) {
    give(catalog::TopicCreated{topic_});
    ASSERT_TRUE(append(*find().log).good());
    volume_.set_hook([](const auto& step) -> std::optional<storage::Fault> {
        if (!step.path.starts_with("orders.")) return std::nullopt;
        return storage::Fault{storage::ErrorCode::kNotFound};
    });
    give(catalog::Opened{{{first(), base::LeaderEpoch(0), base::LeaderEpoch(0)}}});
    int epoch = 1;
    assign(epoch, mine());
    for (int second = 0; second < 600; ++second) {
        ASSERT_EQ(find().state, Hosting::kOffline);
        tick(1s);
        if (released_.empty() || released_.back().epoch < base::LeaderEpoch(epoch)) continue;
        EXPECT_TRUE(second > 0 || epoch == 1) << "the first at once";
        assign(++epoch, mine());
    }
    EXPECT_GT(epoch, 10);
    EXPECT_LT(epoch, 30) << "a minute of doubling, then two a minute";
}

/// An entry of an earlier life's journal, which is left behind.
void leave_journal(storage::MemoryVolume& volume, const storage::Owner& owner,
                   const storage::JournalKey& key) {
    storage::TestingSession session;
    base::InlineExecutor here;
    base::ManualClock clock;
    const std::string batch = "not looked at";
    const storage::JournalEntry entry{.key = key,
                                      .base = base::Offset(0),
                                      .end = base::Offset(1),
                                      .batches = {base::as_bytes(batch)}};
    auto journal = storage::Journal::make({.volume = &volume,
                                           .session = &session,
                                           .io_pool = &here,
                                           .clock = &clock,
                                           .owner = owner,
                                           .file_bytes = 1'000});
    std::ignore = journal->reserve(storage::Journal::size_of(entry));
    ASSERT_TRUE(journal->reserve(storage::Journal::size_of(entry)));
    const auto* one = &entry;
    ASSERT_TRUE(journal->commit({&one, 1}));
}

TEST_F(PartitionTableTest, JournalOfAnEarlierLifeGoesWhenItsTopicsAreWrittenAnewOrGone) {
    auto owner = broker_.log_dir.options().owner;
    owner.incarnation = {base::Uuid::random()};
    leave_journal(volume_, owner, {first(), base::LeaderEpoch(0)});
    give(catalog::TopicCreated{topic_});
    tick(10s);
    EXPECT_EQ(volume_.list("__journals")->size(), 1U) << "nobody has written a later epoch";
    give(catalog::TopicDeleted{topic_.id});
    tick(20s);
    EXPECT_TRUE(volume_.list("__journals")->empty());

    topic_.id = {base::Uuid::random()};
    leave_journal(volume_, owner, {first(), base::LeaderEpoch(0)});
    give(catalog::TopicCreated{topic_});
    assign(1, mine());
    give(catalog::Opened{{{first(), base::LeaderEpoch(1), base::LeaderEpoch(1)}}});
    tick(20s);
    EXPECT_TRUE(volume_.list("__journals")->empty());
}

TEST_F(PartitionTableTest, FencedLogIsNotTriedAgain) {
    broker_.session.fenced = true;
    topic_.partitions[0].leader_epoch = base::LeaderEpoch(1);
    give(catalog::TopicCreated{topic_});
    EXPECT_EQ(find().state, Hosting::kOffline);
    tick(60s);
    EXPECT_TRUE(released_.empty()) << "the whole life is over";
}

TEST_F(PartitionTableTest, ConfigsReachLogsThatAreOpen) {
    give(catalog::TopicCreated{topic_});
    give(catalog::ConfigsChanged{topic_.id, {{"max.message.bytes", "7"}}});
    EXPECT_EQ(find().log->config()->max_message_bytes, 7);
}

TEST_F(PartitionTableTest, DeletedTopicIsReclaimedAndReportedWhenItsLogsAreClosed) {
    give(catalog::TopicCreated{topic_});
    ASSERT_TRUE(append(*find().log).good());
    const auto directory = catalog::topic_directory("orders", topic_.id);
    ASSERT_TRUE(volume_.list(directory));
    change(catalog::TopicDeleted{topic_.id});
    push();
    EXPECT_EQ(find().state, Hosting::kUnknown);
    EXPECT_TRUE(volume_.list(directory)) << "not before its log is closed";
    pool_.run_all();
    EXPECT_FALSE(volume_.list(directory));
    EXPECT_TRUE(volume_.list(std::string(kDeletedDirectory))->empty());
    EXPECT_EQ(reclaimed_, std::vector{topic_.id});
}

TEST_F(PartitionTableTest, FilesOfADeletedTopicStayWhileACycleRuns) {
    Answer answer;
    const auto cycle = write_half_a_cycle(answer);
    give(catalog::TopicDeleted{topic_.id});
    EXPECT_FALSE(answer.value->has_value()) << "the producer need not wait";
    tick(1s);
    EXPECT_TRUE(volume_.list(catalog::topic_directory("orders", topic_.id)));
    EXPECT_TRUE(reclaimed_.empty());
    cycle->sync();
    cycle->confirm();
    cycle->settle();
    tick(1s);
    EXPECT_FALSE(volume_.list(catalog::topic_directory("orders", topic_.id)));
    EXPECT_EQ(reclaimed_, std::vector{topic_.id});
}

TEST_F(PartitionTableTest, FilesStayForACycleOfALogThatWasReleasedBefore) {
    Answer answer;
    const auto cycle = write_half_a_cycle(answer);
    assign(1, {base::BrokerId(2), {base::Uuid::random()}});  // not waited for
    give(catalog::TopicDeleted{topic_.id});
    EXPECT_TRUE(reclaimed_.empty());
    cycle->sync();
    cycle->confirm();
    cycle->settle();
    tick(1s);
    EXPECT_EQ(reclaimed_, std::vector{topic_.id});
}

TEST_F(PartitionTableTest, FailedRemovalIsTriedAgain) {
    give(catalog::TopicCreated{topic_});
    ASSERT_TRUE(append(*find().log).good());
    volume_.fail_nth(storage::Operation::kRename, 1, {});
    give(catalog::TopicDeleted{topic_.id});
    EXPECT_TRUE(reclaimed_.empty());
    tick(1s);
    EXPECT_EQ(reclaimed_, std::vector{topic_.id});
}

TEST_F(PartitionTableTest, NameIsFreeForANewTopicAtOnce) {
    give(catalog::TopicCreated{topic_});
    const auto old = topic_.id;
    change(catalog::TopicDeleted{old});
    topic_.id = {base::Uuid::random()};
    change(catalog::TopicCreated{topic_});
    push();  // one image for both
    pool_.run_all();
    EXPECT_EQ(new_reader().find("orders", base::PartitionId(0)).state, Hosting::kServing);
    EXPECT_EQ(find().state, Hosting::kServing);
    EXPECT_EQ(new_reader().find(old, base::PartitionId(0)).state, Hosting::kUnknown);
}

TEST_F(PartitionTableTest, ClosingReleasesEveryLog) {
    give(catalog::TopicCreated{topic_});
    ASSERT_TRUE(append(*find().log).good());
    auto log = find().log;
    EXPECT_FALSE(table_->close(0ms)) << "the pool has not done it yet";
    EXPECT_EQ(log->failure()->code, storage::ErrorCode::kClosed);
}

/// Else a broker that stops would ask for the same news again and again.
TEST_F(PartitionTableTest, WhatComesWhileItClosesIsNotNewsTwice) {
    give(catalog::TopicCreated{topic_});
    EXPECT_FALSE(table_->close(0ms));
    change(catalog::PartitionsAdded{topic_.id, {topic_.partitions[0]}});
    EXPECT_TRUE(table_->apply(image_));
    EXPECT_EQ(table_->image()->version(), image_->version());
    EXPECT_FALSE(table_->apply(image_));
    EXPECT_EQ(new_reader().find(topic_.id, base::PartitionId(1)).state, Hosting::kNotHere);
}

TEST_F(PartitionTableTest, DeletionWhileItOpensClosesIt) {
    change(catalog::TopicCreated{topic_});
    push();
    change(catalog::TopicDeleted{topic_.id});
    push();
    pool_.run_all();
    EXPECT_EQ(reclaimed_, std::vector{topic_.id});
    EXPECT_EQ(applied_.size(), 2U);
    EXPECT_EQ(table_->serving() + table_->opening() + table_->offline(), 0U);
}

}  // namespace
}  // namespace kaas::cluster
