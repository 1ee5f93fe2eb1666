// Goal: a partition's log gives offsets, makes batches durable and visible as its cycles say, and
// answers as asked. Method: one broker on a volume in memory; the test drives the cycles, and takes
// them apart where something must happen in between.

#include "storage/partition_log.h"

#include "base/executor.h"
#include "storage/memory_volume.h"
#include "storage/partition_log_fixture.h"
#include "storage/testing_log.h"

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
using testing::BatchOptions;
using testing::make_batch;
using testing::PartitionLogTest;
using testing::read_all;
using testing::read_values;
using testing::to_append;

TEST_F(PartitionLogTest, OnlyTheTopicsDirectoryIsMadeForAPartitionThatIsNeverWritten) {
    auto log = open(0);
    EXPECT_TRUE(volume_.list("topic.AAAAAAAAAAAAAAAAAAAAAA")->empty());
    const auto before = volume_.steps();
    EXPECT_EQ(log->latest(Isolation::kReadUncommitted)->offset, base::Offset{0});
    EXPECT_FALSE(log->written_epoch());
    ASSERT_TRUE(read_all(*log, base::Offset{0}));
    ASSERT_TRUE(log->release(std::chrono::seconds(1)));
    EXPECT_EQ(volume_.steps(), before);
}

TEST_F(PartitionLogTest, AWriterNeverMakesTheDirectoryOfADeletedTopicAgain) {
    auto log = open(0);
    ASSERT_TRUE(volume_.remove_directory("topic.AAAAAAAAAAAAAAAAAAAAAA"));
    Answer answer;
    ASSERT_TRUE(append(*log, {}, answer));
    broker_->commit_all();
    EXPECT_EQ(answer.value->error().code, ErrorCode::kNotFound);
    EXPECT_TRUE(volume_.list("")->empty());
}

TEST_F(PartitionLogTest, AnAppendIsVisibleAndAnsweredOnlyAfterItsCycle) {
    auto log = open(0);
    Answer answer;
    ASSERT_EQ(*append(*log, {.records = 3}, answer), base::Offset{0});
    EXPECT_FALSE(answer.value);
    EXPECT_EQ(log->view().high_watermark, base::Offset{0});
    auto cycle = broker_->log_dir.next_cycle();
    ASSERT_NE(cycle, nullptr);
    cycle->write();
    cycle->answer_written();
    cycle->sync();
    EXPECT_FALSE(answer.value);
    EXPECT_EQ(log->view().high_watermark, base::Offset{0});
    cycle->confirm();
    cycle->settle();
    ASSERT_TRUE(answer.good());
    EXPECT_EQ(log->view().high_watermark, base::Offset{3});
    EXPECT_EQ(log->written_epoch(), base::LeaderEpoch{0});
}

TEST_F(PartitionLogTest, BytesComeBackAsSentWithOffsetAndEpochSet) {
    auto log = open(4);
    append_durably(*log, {.records = 2});
    append_durably(*log, {.records = 5, .compression = wire::Compression::kZstd});
    auto expected = make_batch({.records = 5, .compression = wire::Compression::kZstd});
    wire::set_base_offset(expected, 2);
    wire::set_partition_leader_epoch(expected, 4);
    EXPECT_EQ(*read_all(*log, base::Offset{2}), expected);
    // A position inside a batch gives the whole batch.
    EXPECT_EQ(*read_all(*log, base::Offset{4}), expected);
}

TEST_F(PartitionLogTest, WhatWasAcknowledgedSurvivesACrashOfTheMachine) {
    auto log = open(0);
    append_durably(*log, {.value = "first"});
    append_durably(*log, {.value = "second"});
    Answer unanswered;
    ASSERT_TRUE(append(*log, {.value = "never written"}, unanswered));
    log.reset();
    volume_.crash();
    restart();
    log = open(1);
    EXPECT_EQ(*read_values(*log), (std::vector<std::string>{"first", "second"}));
    append_durably(*log, {.value = "third"});
    EXPECT_EQ(*read_values(*log), (std::vector<std::string>{"first", "second", "third"}));
}

// ---- answers ----------------------------------------------------------------------------------

TEST_F(PartitionLogTest, AcksOneIsAnsweredBeforeTheSyncButAfterACheck) {
    auto log = open(0);
    Answer one;
    Answer all;
    ASSERT_TRUE(append(*log, {}, one, Acks::kLeader));
    ASSERT_TRUE(append(*log, {}, all, Acks::kAll));
    auto cycle = broker_->log_dir.next_cycle();
    cycle->write();
    EXPECT_FALSE(one.value);
    const auto checks = broker_->session.checks.load();
    cycle->answer_written();
    EXPECT_EQ(broker_->session.checks, checks + 1);
    EXPECT_TRUE(one.good());
    EXPECT_FALSE(all.value);
    cycle->sync();
    cycle->confirm();
    cycle->settle();
    EXPECT_TRUE(all.good());
}

TEST_F(PartitionLogTest, AcksOneOnARemoteVolumeWaitsForTheSync) {
    volume_.set_local(false);
    auto log = open(0);
    Answer one;
    ASSERT_TRUE(append(*log, {}, one, Acks::kLeader));
    auto cycle = broker_->log_dir.next_cycle();
    cycle->write();
    cycle->answer_written();
    EXPECT_FALSE(one.value) << "no other host can see it yet";
    cycle->sync();
    cycle->confirm();
    cycle->settle();
    EXPECT_TRUE(one.good());
}

TEST_F(PartitionLogTest, OneCycleChecksOnceAndWakesEachHomeOnce) {
    class Counting final : public base::Executor {
    public:
        void post(Work work) override {
            ++posts;
            work();
        }
        int posts = 0;
    };
    Counting home;
    auto log = open(0);
    append_durably(*log, {});
    int answers = 0;
    for (int i = 0; i < 10; ++i) {
        ASSERT_TRUE(
            log->append(to_append(make_batch({}), Acks::kAll, home, [&](auto) { ++answers; })));
    }
    const auto checks = broker_->session.checks.load();
    broker_->commit_all();
    EXPECT_EQ(answers, 10);
    EXPECT_EQ(home.posts, 1);
    EXPECT_EQ(broker_->session.checks, checks + 1);
}

TEST_F(PartitionLogTest, ARepetitionInFlightIsAnsweredNotBeforeTheOriginal) {
    auto log = open(0);
    const BatchOptions batch{.producer_id = 5, .producer_epoch = 0, .sequence = 0};
    Answer original;
    Answer repetition;
    ASSERT_EQ(*append(*log, batch, original), base::Offset{0});
    auto cycle = broker_->log_dir.next_cycle();
    cycle->write();
    ASSERT_EQ(*append(*log, batch, repetition), base::Offset{0});
    EXPECT_FALSE(repetition.value);
    cycle->answer_written();
    cycle->sync();
    cycle->confirm();
    cycle->settle();
    EXPECT_TRUE(original.good());
    EXPECT_FALSE(repetition.value);
    broker_->commit_all();
    ASSERT_TRUE(repetition.good());
    EXPECT_EQ((*repetition.value)->base_offset, base::Offset{0});
    EXPECT_EQ(log->view().high_watermark, base::Offset{1});
}

TEST_F(PartitionLogTest, ARepetitionFailsWithTheOriginal) {
    auto log = open(0);
    append_durably(*log, {});
    const BatchOptions batch{.producer_id = 5, .producer_epoch = 0, .sequence = 0};
    Answer original;
    Answer repetition;
    ASSERT_TRUE(append(*log, batch, original));
    volume_.fail_nth(Operation::kSync, 1, {.code = ErrorCode::kIo});
    auto cycle = broker_->log_dir.next_cycle();
    cycle->write();
    ASSERT_TRUE(append(*log, batch, repetition));
    cycle->sync();
    cycle->confirm();
    cycle->settle();
    EXPECT_EQ(original.value->error().code, ErrorCode::kIo);
    EXPECT_EQ(repetition.value->error().code, ErrorCode::kIo);
}

TEST_F(PartitionLogTest, EpochsOfTheCallerAreChecked) {
    auto log = open(3);
    Answer answer;
    const auto ask = [&](std::int32_t epoch) {
        auto request = to_append(make_batch({}), Acks::kAll, broker_->executor, answer.receiver());
        request.current_leader_epoch = epoch;
        return log->append(std::move(request));
    };
    EXPECT_EQ(ask(2).error().code, ErrorCode::kWrongEpoch);
    EXPECT_EQ(ask(-2).error().code, ErrorCode::kWrongEpoch);
    EXPECT_EQ(ask(4).error().code, ErrorCode::kUnknownEpoch);
    EXPECT_TRUE(ask(3));
    EXPECT_TRUE(ask(-1));
    EXPECT_EQ(log->read({.current_leader_epoch = 2}, Patience::kNever).error().code,
              ErrorCode::kWrongEpoch);
    EXPECT_EQ(log->end_of_epoch(base::LeaderEpoch{3}, 4).error().code, ErrorCode::kUnknownEpoch);
}

// ---- failures ---------------------------------------------------------------------------------

TEST_F(PartitionLogTest, AFailedSyncEndsTheLogAndMovesNothing) {
    auto log = open(0);
    append_durably(*log, {.value = "good"});
    std::optional<Error> failure;
    Answer failed;
    Answer pending;
    ASSERT_TRUE(append(*log, {.value = "lost"}, failed));
    volume_.fail_nth(Operation::kSync, 1, {.code = ErrorCode::kIo});
    auto cycle = broker_->log_dir.next_cycle();
    cycle->write();
    ASSERT_TRUE(append(*log, {.value = "behind it"}, pending));
    cycle->sync();
    cycle->confirm();
    cycle->settle();
    EXPECT_EQ(failed.value->error().code, ErrorCode::kIo);
    EXPECT_EQ(pending.value->error().code, ErrorCode::kIo);
    EXPECT_EQ(log->view().high_watermark, base::Offset{1});
    Answer late;
    EXPECT_EQ(append(*log, {}, late).error().code, ErrorCode::kIo);
    EXPECT_EQ(log->read({}, Patience::kMayBlock).error().code, ErrorCode::kIo);
    broker_->commit_all();
    volume_.crash();
    restart();
    log = open(1);
    EXPECT_EQ(*read_values(*log), (std::vector<std::string>{"good"}));
}

TEST_F(PartitionLogTest, AFencedOwnerAcknowledgesNothing) {
    auto log = open(0);
    append_durably(*log, {});
    Answer answer;
    ASSERT_TRUE(append(*log, {}, answer));
    broker_->session.fenced = true;
    broker_->commit_all();
    EXPECT_EQ(answer.value->error().code, ErrorCode::kFenced);
    EXPECT_EQ(log->view().high_watermark, base::Offset{1});
}

TEST_F(PartitionLogTest, ACheckThatProvesNothingAcknowledgesNothing) {
    auto log = open(0);
    Answer answer;
    ASSERT_TRUE(append(*log, {}, answer));
    broker_->session.silent = true;
    broker_->commit_all();
    EXPECT_EQ(answer.value->error().code, ErrorCode::kIo);
    EXPECT_EQ(log->view().high_watermark, base::Offset{0});
}

TEST_F(PartitionLogTest, AStalledCycleFailsItsTicketsAndGoesOnWhenItAnswers) {
    auto log = open(0);
    Answer answer;
    ASSERT_TRUE(append(*log, {.value = "late"}, answer));
    auto cycle = broker_->log_dir.next_cycle();
    cycle->write();
    log->fail_stalled();
    EXPECT_EQ(answer.value->error().code, ErrorCode::kStalled);
    cycle->sync();
    cycle->confirm();
    cycle->settle();
    EXPECT_FALSE(log->failure());
    EXPECT_EQ(log->view().high_watermark, base::Offset{1});
}

// ---- other settings ---------------------------------------------------------------------------

TEST_F(PartitionLogTest, DeferredFlushesSyncAsOftenAsAsked) {
    LogConfig config;
    config.flush_messages = 3;
    auto log = open(0, config);
    append_durably(*log, {});  // the first also makes the files
    int syncs = 0;
    volume_.set_hook([&](const MemoryVolume::Step& step) -> std::optional<Fault> {
        if (step.operation == Operation::kSync) ++syncs;
        return std::nullopt;
    });
    append_durably(*log, {});
    EXPECT_EQ(syncs, 0);
    EXPECT_EQ(log->view().high_watermark, base::Offset{2});
    append_durably(*log, {});
    EXPECT_EQ(syncs, 1);
    volume_.set_hook({});
    config.flush_messages = 1;
    log->set_config(config);
    volume_.set_hook([&](const MemoryVolume::Step& step) -> std::optional<Fault> {
        if (step.operation == Operation::kSync) ++syncs;
        return std::nullopt;
    });
    append_durably(*log, {});
    EXPECT_EQ(syncs, 2);
}

TEST_F(PartitionLogTest, ACheckpointWaitsForTheCycleThatFlushes) {
    broker_ = std::make_unique<testing::Broker>(volume_, clock_, 1);  // one is due after each cycle
    LogConfig config;
    config.flush_messages = 3;
    auto log = open(0, config);
    const auto manifest = [&] {
        return *read_whole(volume_, "topic.AAAAAAAAAAAAAAAAAAAAAA/0/00000000/manifest-1.jsonl",
                           1 << 20);
    };
    const auto synced_lines = [&] {
        int lines = 0;
        const auto text = manifest();
        for (auto at = text.find("\"synced\""); at != text.npos;
             at = text.find("\"synced\"", at + 1))
            ++lines;
        return lines;
    };
    append_durably(*log, {});
    append_durably(*log, {});
    EXPECT_EQ(synced_lines(), 0);
    append_durably(*log, {});
    EXPECT_EQ(synced_lines(), 1);
}

TEST_F(PartitionLogTest, ACheckpointThatFailedIsTriedAgainForAQuietLog) {
    LogConfig config;
    config.index_interval_bytes = 0;
    auto log = open(0, config);
    for (int i = 0; i < 2; ++i) append_durably(*log, {});
    const auto due = [&] {
        clock_.advance(broker_->log_dir.options().checkpoint_after);
        broker_->commit_all();
        const auto text = *read_whole(
            volume_, "topic.AAAAAAAAAAAAAAAAAAAAAA/0/00000000/manifest-1.jsonl", 1 << 20);
        return text.find("\"synced\"") != text.npos;
    };
    volume_.set_hook([](const MemoryVolume::Step& step) -> std::optional<Fault> {
        if (!step.path.ends_with(".index")) return std::nullopt;
        return Fault{ErrorCode::kNoSpace};
    });
    EXPECT_FALSE(due());
    EXPECT_FALSE(due());
    volume_.set_hook({});
    EXPECT_TRUE(due());
    EXPECT_FALSE(log->failure());
}

TEST_F(PartitionLogTest, WhatARollRecordedIsNotCountedForTheNextCheckpoint) {
    const auto bytes = testing::make_batch({.value_bytes = 100}).size();
    broker_ = std::make_unique<testing::Broker>(volume_, clock_, 4 * bytes);
    LogConfig config;
    config.segment_bytes = static_cast<std::int32_t>(3 * bytes);
    auto log = open(0, config);
    for (int i = 0; i < 5; ++i) append_durably(*log, {.value_bytes = 100});
    ASSERT_EQ(log->view().sealed->size(), 1U);
    const auto text =
        *read_whole(volume_, "topic.AAAAAAAAAAAAAAAAAAAAAA/0/00000000/manifest-1.jsonl", 1 << 20);
    EXPECT_EQ(text.find("\"synced\""), text.npos) << text;
}

TEST_F(PartitionLogTest, ALogThatEndedSaysNeitherWhereItBeginsNorEnds) {
    auto log = open(0);
    append_durably(*log, {});
    log->abandon(ErrorCode::kFenced);
    EXPECT_EQ(log->earliest().error().code, ErrorCode::kFenced);
    EXPECT_EQ(log->latest(Isolation::kReadUncommitted).error().code, ErrorCode::kFenced);
}

TEST_F(PartitionLogTest, FlushMsFlushesWhatIsOld) {
    LogConfig config;
    config.flush_messages = 1000;
    config.flush_ms = 2000;
    auto log = open(0, config);
    append_durably(*log, {});
    clock_.advance(std::chrono::milliseconds(2000));
    volume_.fail_nth(Operation::kSync, 1, {.code = ErrorCode::kIo});
    Answer answer;
    ASSERT_TRUE(append(*log, {}, answer));
    broker_->commit_all();
    EXPECT_FALSE(answer.good());
}

TEST_F(PartitionLogTest, FlushMsHoldsForAPartitionThatGoesQuiet) {
    LogConfig config;
    config.flush_messages = 1000;
    config.flush_ms = 7000;
    auto log = open(0, config);
    append_durably(*log, {.value = "last for a long time"});
    for (int i = 0; i < 3; ++i) {
        clock_.advance(std::chrono::seconds(5));
        broker_->commit_all();
    }
    log.reset();
    volume_.crash();
    restart();
    EXPECT_EQ(*read_values(*open(1)), (std::vector<std::string>{"last for a long time"}));
}

TEST_F(PartitionLogTest, AnEndedLogIsNotSyncedAgain) {
    auto log = open(0);
    append_durably(*log, {});
    Answer failed;
    ASSERT_TRUE(append(*log, {}, failed));
    volume_.fail_nth(Operation::kSync, 1, {.code = ErrorCode::kIo});
    broker_->commit_all();
    ASSERT_FALSE(failed.good());
    EXPECT_EQ(log->take(), CommitMember::Pace::kQuick);
    EXPECT_EQ(log->to_sync(), nullptr);
}

TEST_F(PartitionLogTest, ASegmentThatTheManifestNamesAndThatIsGoneIsALoss) {
    auto log = open(0);
    append_durably(*log, {});
    log.reset();
    restart();
    const std::string segment = "topic.AAAAAAAAAAAAAAAAAAAAAA/0/00000000/00000000000000000000.log";
    ASSERT_TRUE(volume_.unlink(segment));
    auto opened = broker_->open(1);
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, ErrorCode::kCorrupt);
    EXPECT_NE(opened.error().context.find(segment), std::string::npos) << opened.error().context;
}

TEST_F(PartitionLogTest, ACheckpointNamesOnlyWhatIsSynced) {
    LogConfig config;
    config.flush_messages = 1000;
    auto log = open(0, config);
    append_durably(*log, {});
    clock_.advance(std::chrono::seconds(6));
    broker_->commit_all();
    log.reset();
    volume_.crash();
    restart();
    EXPECT_EQ(open(1, config)->view().high_watermark, base::Offset{0});
}

TEST_F(PartitionLogTest, SmallerSegmentsTakeEffectWithoutARestart) {
    auto log = open(0);
    append_durably(*log, {.value_bytes = 200});
    LogConfig config;
    config.segment_bytes = 300;
    log->set_config(config);
    append_durably(*log, {.value_bytes = 200});
    EXPECT_EQ(log->view().sealed->size(), 1);
}

}  // namespace
}  // namespace kaas::storage
