// Goal: a partition changes hands without loss and without needless work: releases, checkpoints,
// takers, and who comes too late. Method: lives of brokers on one volume in memory, one after the
// other or side by side; the test drives their cycles.

#include "base/executor.h"
#include "base/ids.h"
#include "base/uuid.h"
#include "storage/epoch_beginning.h"
#include "storage/journal.h"
#include "storage/log_dir.h"
#include "storage/memory_volume.h"
#include "storage/partition_log.h"
#include "storage/partition_log_fixture.h"
#include "storage/testing_log.h"
#include "storage/testing_session.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kaas::storage {
namespace {

using testing::Answer;
using testing::Broker;
using testing::HeldExecutor;
using testing::make_batch;
using testing::PartitionLogTest;
using testing::read_values;
using testing::to_append;

TEST_F(PartitionLogTest, AfterAReleaseTheNextOwnerScansAndWritesNothing) {
    auto log = open(0);
    append_durably(*log, {.producer_id = 1, .producer_epoch = 0, .sequence = 0, .value = "kept"});
    ASSERT_TRUE(log->release(std::chrono::seconds(1)));
    Answer answer;
    EXPECT_EQ(append(*log, {}, answer).error().code, ErrorCode::kClosed);
    restart();
    int writes = 0;
    volume_.set_hook([&](const MemoryVolume::Step& step) -> std::optional<Fault> {
        if (step.operation == Operation::kWrite || step.operation == Operation::kCreate) ++writes;
        return std::nullopt;
    });
    log = open(1);
    EXPECT_EQ(writes, 0);
    EXPECT_EQ(log->written_epoch(), base::LeaderEpoch{0});
    EXPECT_EQ(*read_values(*log), (std::vector<std::string>{"kept"}));
    EXPECT_EQ(*append(*log, {.producer_id = 1, .producer_epoch = 0, .sequence = 0}, answer),
              base::Offset{0});
    append_durably(*log, {.value = "next"});
    EXPECT_EQ(log->written_epoch(), base::LeaderEpoch{1});
    EXPECT_EQ(*read_values(*log), (std::vector<std::string>{"kept", "next"}));
}

TEST_F(PartitionLogTest, ExpectedReleaseWaitsForNoCheckpoint) {
    auto log = open(0);
    append_durably(*log, {.value = "kept"});
    log->expect_release();
    Answer answer;
    EXPECT_EQ(append(*log, {}, answer).error().code, ErrorCode::kClosed);
    clock_.advance(std::chrono::seconds(6));
    int writes = 0;
    volume_.set_hook([&](const MemoryVolume::Step& step) -> std::optional<Fault> {
        if (step.operation == Operation::kWrite) ++writes;
        return std::nullopt;
    });
    broker_->commit_all();
    EXPECT_EQ(writes, 0);
    ASSERT_TRUE(log->release(std::chrono::seconds(1)));
    EXPECT_GT(writes, 0) << "a test of nothing";
}

TEST_F(PartitionLogTest, WhatEndsAfterAReleaseMovesNothing) {
    auto log = open(0);
    append_durably(*log, {});
    Answer answer;
    ASSERT_TRUE(append(*log, {}, answer));
    auto cycle = broker_->log_dir.next_cycle();
    cycle->write();
    cycle->sync();
    EXPECT_FALSE(log->release(std::chrono::milliseconds(0)));
    EXPECT_EQ(answer.value->error().code, ErrorCode::kClosed);
    cycle->confirm();
    cycle->settle();
    EXPECT_EQ(log->view().high_watermark, base::Offset{1});
    EXPECT_EQ(log->read({}, Patience::kNever).error().code, ErrorCode::kClosed);
}

TEST_F(PartitionLogTest, AnIdleLogIsTakenOverWithoutAWriteEvenAfterAKill) {
    auto log = open(0);
    append_durably(*log, {.value = "kept"});
    clock_.advance(std::chrono::seconds(6));
    broker_->commit_all();  // the checkpoint
    log.reset();
    restart();
    log = open(1);
    EXPECT_EQ(log->written_epoch(), base::LeaderEpoch{0});
    EXPECT_EQ(*read_values(*log), (std::vector<std::string>{"kept"}));
}

TEST_F(PartitionLogTest, WhatWasOnlyReadIsNotServedBeforeItStandsInADurablePicture) {
    auto log = open(0);
    append_durably(*log, {.value = "first"});
    Answer unanswered;
    ASSERT_TRUE(append(*log, {.value = "unsynced tail"}, unanswered));
    broker_->log_dir.next_cycle()->write();
    log.reset();
    restart();
    // The next owner copies the tail and is killed while it syncs its picture: that is readable,
    // not durable.
    volume_.set_hook([](const MemoryVolume::Step& step) -> std::optional<Fault> {
        if (step.operation != Operation::kSync ||
            !step.path.ends_with("00000001/manifest-1.jsonl")) {
            return std::nullopt;
        }
        return Fault{.code = ErrorCode::kIo};
    });
    EXPECT_FALSE(broker_->open(1));
    volume_.set_hook({});
    restart();
    log = open(2);
    EXPECT_EQ(log->written_epoch(), base::LeaderEpoch{2});
    const auto seen = *read_values(*log);
    log.reset();
    volume_.crash();
    restart();
    EXPECT_EQ(*read_values(*open(3)), seen);
}

/// The takers of epochs 1 and 2 die when their directory's name would become durable; then the
/// power fails, and of the names that are not durable some are lost.
TEST(PartitionLogPowerTest, APictureNamesNothingWhoseNameCanBeLost) {
    for (std::uint64_t seed = 0; seed < 32; ++seed) {
        SCOPED_TRACE(seed);
        MemoryVolume volume;
        base::ManualClock clock;
        Broker broker(volume, clock);
        Answer answer;
        auto first = broker.open(0);
        ASSERT_TRUE(first);
        ASSERT_TRUE((*first)->append(
            to_append(make_batch({}), Acks::kAll, broker.executor, answer.receiver())));
        broker.commit_all();
        for (const auto epoch : {1, 2}) {
            bool has_picture = false;
            volume.set_hook([&](const MemoryVolume::Step& step) -> std::optional<Fault> {
                const bool syncs = step.operation == Operation::kSyncDirectory;
                if (syncs && has_picture && step.path.ends_with("/0")) return Fault{};
                has_picture |= syncs && step.path.ends_with(std::to_string(epoch));
                return std::nullopt;
            });
            ASSERT_FALSE(broker.open(epoch));
        }
        volume.set_hook({});
        volume.crash({.seed = seed});
        Broker next(volume, clock);
        const auto opened = next.open(3);
        ASSERT_TRUE(opened) << opened.error().context;
        const auto values = read_values(**opened);
        ASSERT_TRUE(values) << values.error().context;
        EXPECT_EQ(values->size(), 1U);
    }
}

TEST_F(PartitionLogTest, ACheckpointThatComesBehindARollDoesNothing) {
    class Later final : public base::Executor {
    public:
        void post(Work work) override { works.push_back(std::move(work)); }
        std::vector<Work> works;
    };
    Later pool;
    LogDir log_dir({.volume = &volume_,
                    .session = &broker_->session,
                    .io_pool = &pool,
                    .clock = &clock_,
                    .owner = {.broker = base::BrokerId{1}, .incarnation = {base::Uuid::random()}},
                    .checkpoint_bytes = 1});
    LogConfig config;
    config.segment_bytes = 300;
    config.index_interval_bytes = 0;
    auto log = *PartitionLog::open({.log_dir = &log_dir,
                                    .directory = "topic.AAAAAAAAAAAAAAAAAAAAAA/0",
                                    .epoch = base::LeaderEpoch{0},
                                    .earlier = {},
                                    .config = config});
    for (int i = 0; i < 12; ++i) {
        Answer answer;
        ASSERT_TRUE(append(*log, {.value_bytes = 50}, answer));
        while (log_dir.run_cycle()) {
        }
        ASSERT_TRUE(answer.good());
    }
    ASSERT_GT(log->view().sealed->size(), 2);
    while (!pool.works.empty()) {
        for (auto& work : std::exchange(pool.works, {})) work();
        while (log_dir.run_cycle()) {
        }
    }
    EXPECT_FALSE(log->failure());
    ASSERT_TRUE(log->release(std::chrono::seconds(1)));
}

TEST_F(PartitionLogTest, AnIdleLogHasNoMoreCycles) {
    auto log = open(0);
    append_durably(*log, {});
    clock_.advance(std::chrono::seconds(6));
    EXPECT_TRUE(broker_->log_dir.run_cycle());
    clock_.advance(std::chrono::hours(6));
    EXPECT_FALSE(broker_->log_dir.run_cycle());
}

TEST_F(PartitionLogTest, AnEpochThatATakerClosedIsLostAtItsFirstWrite) {
    auto zombie = open(0);
    std::optional<Error> failure;
    Broker next(volume_, clock_);
    ASSERT_TRUE(make_partition_directory(volume_, "topic.AAAAAAAAAAAAAAAAAAAAAA/0"));
    ASSERT_TRUE(next.open(1));
    Answer answer;
    ASSERT_TRUE(append(*zombie, {}, answer));
    broker_->commit_all();
    EXPECT_EQ(answer.value->error().code, ErrorCode::kExists);
}

TEST_F(PartitionLogTest, ReleaseDoesNotWaitForACheckpointThatIsOnlyQueued) {
    TestingSession session;
    HeldExecutor pool;  // all of whose threads may be releasing logs
    LogDir log_dir({.volume = &volume_,
                    .session = &session,
                    .io_pool = &pool,
                    .clock = &clock_,
                    .owner = {.broker = base::BrokerId{1}, .incarnation = {}}});
    auto log = *PartitionLog::open({.log_dir = &log_dir,
                                    .directory = "topic.AAAAAAAAAAAAAAAAAAAAAA/0",
                                    .epoch = base::LeaderEpoch{0},
                                    .earlier = {},
                                    .config = {}});
    Answer answer;
    ASSERT_TRUE(append(*log, {}, answer));
    ASSERT_TRUE(log_dir.run_cycle());
    clock_.advance(std::chrono::seconds(6));
    ASSERT_TRUE(log_dir.run_cycle());
    ASSERT_EQ(pool.size(), 1U) << "the checkpoint";
    EXPECT_FALSE(log->at_work());
    EXPECT_TRUE(log->release(std::chrono::milliseconds(0)));
    const auto before = volume_.steps();
    pool.run_all();
    EXPECT_EQ(volume_.steps(), before) << "nothing is written behind the last line";
}

/// A life whose batches become durable in the journal, once it has room.
class JournaledLogTest : public PartitionLogTest {
protected:
    /// The first batch goes to its segment and makes the journal begin; the second is in it alone.
    std::shared_ptr<PartitionLog> open_and_append_two() {
        auto log = *PartitionLog::open({.log_dir = &log_dir_,
                                        .directory = "topic.AAAAAAAAAAAAAAAAAAAAAA/0",
                                        .epoch = base::LeaderEpoch{0},
                                        .earlier = {},
                                        .config = {}});
        for (const auto* value : {"first", "second"}) {
            Answer answer;
            EXPECT_TRUE(append(*log, {.value = value}, answer));
            while (log_dir_.run_cycle()) {
            }
            EXPECT_TRUE(answer.good());
        }
        EXPECT_EQ(log_dir_.journal()->files(), 1U);
        return log;
    }

    TestingSession session_;
    base::InlineExecutor pool_;
    LogDir log_dir_{{.volume = &volume_,
                     .session = &session_,
                     .io_pool = &pool_,
                     .clock = &clock_,
                     .owner = {.broker = base::BrokerId{1}, .incarnation = {base::Uuid::random()}},
                     .journal = true,
                     .journal_file_bytes = 64 * 1024}};
};

TEST_F(JournaledLogTest, WhatIsAbandonedIsKeptForItsTaker) {
    auto log = open_and_append_two();
    log->abandon(ErrorCode::kClosed);
    log_dir_.stop();
    volume_.crash();
    restart();
    log = open(1);
    EXPECT_EQ(*read_values(*log), (std::vector<std::string>{"first", "second"}));
}

TEST_F(JournaledLogTest, WhatIsDeletedKeepsNoJournal) {
    auto log = open_and_append_two();
    log->drop();
    log_dir_.stop();
    EXPECT_TRUE(volume_.list("__journals")->empty());
}

TEST_F(JournaledLogTest, WhatHadEndedBeforeItWasDeletedKeepsNoJournal) {
    auto log = open_and_append_two();
    log->abandon(ErrorCode::kFenced);
    log->drop();
    log_dir_.stop();
    EXPECT_TRUE(volume_.list("__journals")->empty());
}

/// The next epoch was to be on another volume, and never was; nobody has heard that the one before
/// was written.
TEST_F(PartitionLogTest, ADirectoryThatIsNotThereSaysNothingOfAnotherVolume) {
    const auto log = open(0);
    append_durably(*log, {.value = "kept"});
    MemoryVolume elsewhere;
    Broker next(elsewhere, clock_);
    const auto taken = PartitionLog::open(
        {.log_dir = &next.log_dir,
         .directory = log->directory(),
         .epoch = base::LeaderEpoch{2},
         .earlier = {{.volume = &elsewhere, .epoch = 1}, {.volume = &volume_, .epoch = 0}},
         .config = {}});
    ASSERT_TRUE(taken) << taken.error().context;
    EXPECT_EQ(read_values(**taken), std::vector<std::string>{"kept"});
}

}  // namespace
}  // namespace kaas::storage
