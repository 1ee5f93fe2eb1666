// Goal: a partition's log gives offsets, makes batches durable and visible as its cycles say,
// answers as asked, and serves readers whole batches. Method: one broker on a volume in memory; the
// test drives the cycles, and takes them apart where something must happen in between.

#include "storage/partition_log.h"

#include "storage/testing_log.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
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
using testing::Broker;
using testing::HeldExecutor;
using testing::make_batch;
using testing::read_all;
using testing::read_values;
using testing::to_append;

class PartitionLogTest : public ::testing::Test {
protected:
    [[nodiscard]] std::shared_ptr<PartitionLog> open(std::int32_t epoch,
                                                     const LogConfig& config = {}) {
        auto opened = broker_->open(epoch, config);
        EXPECT_TRUE(opened) << opened.error().context;
        return opened ? *opened : nullptr;
    }
    Result<base::Offset> append(PartitionLog& log, const BatchOptions& batch, Answer& answer,
                                Acks acks = Acks::kAll) {
        KAAS_TRY_ASSIGN(accepted, log.append(to_append(make_batch(batch), acks, broker_->executor,
                                                       answer.receiver())));
        EXPECT_EQ(accepted.records, batch.records);
        return accepted.base_offset;
    }
    void append_durably(PartitionLog& log, const BatchOptions& batch) {
        Answer answer;
        const auto offset = append(log, batch, answer);
        ASSERT_TRUE(offset) << offset.error().context;
        broker_->commit_all();
        ASSERT_TRUE(answer.good());
        EXPECT_EQ((*answer.value)->base_offset, *offset);
    }
    void restart() { broker_ = std::make_unique<Broker>(volume_, clock_); }

    MemoryVolume volume_;
    base::ManualClock clock_;
    std::unique_ptr<Broker> broker_ = std::make_unique<Broker>(volume_, clock_);
};

TEST_F(PartitionLogTest, OnlyTheTopicsDirectoryIsMadeForAPartitionThatIsNeverWritten) {
    auto log = open(0);
    EXPECT_TRUE(volume_.list("topic.AAAAAAAAAAAAAAAAAAAAAA")->empty());
    const auto before = volume_.steps();
    EXPECT_EQ(log->latest(Isolation::kReadUncommitted).offset, base::Offset{0});
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

// ---- release ----------------------------------------------------------------------------------

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

// ---- reading ----------------------------------------------------------------------------------

TEST_F(PartitionLogTest, AReadIsCutAfterAWholeBatch) {
    auto log = open(0);
    const auto bytes = make_batch({.value_bytes = 100}).size();
    for (int i = 0; i < 5; ++i) append_durably(*log, {.value_bytes = 100});
    const auto length = [&](std::uint64_t max_bytes, bool at_least_one = true) {
        return log
            ->read({.from = base::Offset{1},
                    .max_bytes = max_bytes,
                    .at_least_one_batch = at_least_one},
                   Patience::kNever)
            ->records.length;
    };
    EXPECT_EQ(length(1), bytes);
    EXPECT_EQ(length(1, false), 0);
    EXPECT_EQ(length(0, false), 0);
    EXPECT_EQ(length(2 * bytes - 1), bytes);
    EXPECT_EQ(length(2 * bytes), 2 * bytes);
    EXPECT_EQ(length(100 * bytes), 4 * bytes);
}

TEST_F(PartitionLogTest, EveryOffsetIsFoundAcrossSegmentsAndRestarts) {
    LogConfig config;
    config.segment_bytes = 1000;
    config.index_interval_bytes = 150;
    auto log = open(0, config);
    std::vector<std::string> values;
    for (int i = 0; i < 60; ++i) {
        values.push_back(std::to_string(i));
        append_durably(*log, {.value = values.back()});
    }
    const auto check = [&] {
        EXPECT_GT(log->view().sealed->size(), 3);
        for (int i = 0; i < 60; ++i) {
            const auto read =
                log->read({.from = base::Offset{i}, .max_bytes = 1}, Patience::kMayBlock);
            ASSERT_TRUE(read) << read.error().context;
            std::byte header[wire::BatchHeader::kBytes];
            ASSERT_TRUE(read_exactly(*read->records.file, read->records.offset, header,
                                     Patience::kMayBlock));
            EXPECT_EQ(wire::BatchHeader::parse(header)->base_offset, i);
        }
        EXPECT_EQ(*read_values(*log), values);
    };
    check();
    ASSERT_TRUE(log->release(std::chrono::seconds(1)));
    restart();
    log = open(1, config);
    check();
}

TEST_F(PartitionLogTest, AWrongIndexOnlyCostsTime) {
    LogConfig config;
    config.index_interval_bytes = 0;
    auto log = open(0, config);
    for (int i = 0; i < 20; ++i) append_durably(*log, {.value = std::to_string(i)});
    ASSERT_TRUE(log->release(std::chrono::seconds(1)));
    auto index = *volume_.open("topic.AAAAAAAAAAAAAAAAAAAAAA/0/00000000/00000000000000000000.index",
                               OpenMode::kReadWrite);
    for (std::uint64_t at = 0; at < *index->size(); at += 8) {
        std::byte position[4];
        base::store_be<std::int32_t>(position, 33);
        const base::ByteView piece(position);
        ASSERT_TRUE(index->write_at(at + 4, {&piece, 1}));
    }
    restart();
    log = open(1, config);
    for (int i = 0; i < 20; ++i) {
        const auto read = log->read({.from = base::Offset{i}, .max_bytes = 1}, Patience::kMayBlock);
        ASSERT_TRUE(read) << read.error().context;
        std::byte offset[8];
        ASSERT_TRUE(
            read_exactly(*read->records.file, read->records.offset, offset, Patience::kMayBlock));
        EXPECT_EQ(base::load_be<std::int64_t>(offset), i);
    }
}

TEST_F(PartitionLogTest, OffsetsOutsideAreToldOnlyAfterACheck) {
    auto log = open(0);
    append_durably(*log, {});
    for (const std::int64_t offset : {-1, 2, 100}) {
        const auto at = base::Offset{offset};
        EXPECT_EQ(log->read({.from = at}, Patience::kNever).error().code, ErrorCode::kWouldBlock);
        EXPECT_EQ(log->read({.from = at}, Patience::kMayBlock).error().code,
                  ErrorCode::kOffsetOutOfRange);
    }
    EXPECT_EQ(log->read({.from = base::Offset{1}}, Patience::kNever)->records.length, 0);
    broker_->session.fenced = true;
    EXPECT_EQ(log->read({.from = base::Offset{9}}, Patience::kMayBlock).error().code,
              ErrorCode::kFenced);
}

TEST_F(PartitionLogTest, ATailReadTouchesNoFileEvenOnARemoteVolume) {
    volume_.set_local(false);
    auto log = open(0);
    append_durably(*log, {});
    append_durably(*log, {});
    const auto steps = volume_.steps();
    const auto read = log->read({.from = base::Offset{1}, .max_bytes = 1 << 20}, Patience::kNever);
    ASSERT_TRUE(read) << read.error().context;
    EXPECT_GT(read->records.length, 0);
    EXPECT_EQ(volume_.steps(), steps);
    EXPECT_EQ(log->read({.from = base::Offset{0}, .max_bytes = 1}, Patience::kNever).error().code,
              ErrorCode::kWouldBlock);
    EXPECT_EQ(volume_.steps(), steps);
}

TEST_F(PartitionLogTest, AColdReadGoesToThePool) {
    LogConfig config;
    config.segment_bytes = 1000;
    auto log = open(0, config);
    for (int i = 0; i < 30; ++i) append_durably(*log, {});
    ASSERT_TRUE(log->release(std::chrono::seconds(1)));
    restart();
    log = open(1, config);
    const Read read{.from = base::Offset{4}, .max_bytes = 100};
    EXPECT_EQ(log->read(read, Patience::kNever).error().code, ErrorCode::kWouldBlock);
    ASSERT_TRUE(log->read(read, Patience::kMayBlock));
    EXPECT_TRUE(log->read(read, Patience::kNever));
    volume_.set_cached(false);
    const Read another{.from = base::Offset{2}, .max_bytes = 100};
    EXPECT_EQ(log->read(another, Patience::kNever).error().code, ErrorCode::kWouldBlock);
}

TEST_F(PartitionLogTest, CommittedReadsStopAtTheOpenTransaction) {
    auto log = open(0);
    append_durably(*log, {.records = 2});
    append_durably(*log,
                   {.producer_id = 1, .producer_epoch = 0, .sequence = 0, .transactional = true});
    append_durably(*log, {});
    EXPECT_EQ(log->view().last_stable_offset, base::Offset{2});
    EXPECT_EQ(log->latest(Isolation::kReadCommitted).offset, base::Offset{2});
    EXPECT_EQ(log->latest(Isolation::kReadUncommitted).offset, base::Offset{4});
    const auto read =
        log->read({.max_bytes = 1 << 20, .isolation = Isolation::kReadCommitted}, Patience::kNever);
    ASSERT_TRUE(read) << read.error().context;
    EXPECT_EQ(read->records.length, make_batch({.records = 2}).size());
    EXPECT_EQ(
        log->read({.from = base::Offset{2}, .max_bytes = 9, .isolation = Isolation::kReadCommitted},
                  Patience::kNever)
            ->records.length,
        0);
}

// ---- waiting ----------------------------------------------------------------------------------

TEST_F(PartitionLogTest, AWatchFiresOnceWhenEnoughIsDurable) {
    auto log = open(0);
    append_durably(*log, {});
    const auto bytes = make_batch({}).size();
    int woken = 0;
    (void)log->watch({.beyond = base::Offset{1},
                      .min_bytes = bytes + 1,
                      .home = &broker_->executor,
                      .wake = [&] { ++woken; }});
    append_durably(*log, {});
    EXPECT_EQ(woken, 0);
    append_durably(*log, {});
    EXPECT_EQ(woken, 1);
    append_durably(*log, {});
    EXPECT_EQ(woken, 1);
}

TEST_F(PartitionLogTest, AWatchThatComesTooLateFiresAtOnceAndACancelledOneNever) {
    auto log = open(0);
    append_durably(*log, {});
    int woken = 0;
    (void)log->watch(
        {.beyond = base::Offset{0}, .home = &broker_->executor, .wake = [&] { ++woken; }});
    EXPECT_EQ(woken, 1);
    const auto id = log->watch(
        {.beyond = base::Offset{1}, .home = &broker_->executor, .wake = [&] { ++woken; }});
    log->unwatch(id);
    append_durably(*log, {});
    EXPECT_EQ(woken, 1);
    (void)log->watch(
        {.beyond = base::Offset{2}, .home = &broker_->executor, .wake = [&] { ++woken; }});
    log->abandon(ErrorCode::kClosed);
    EXPECT_EQ(woken, 2);
}

// ---- times ------------------------------------------------------------------------------------

TEST_F(PartitionLogTest, TimesAreFoundToTheRecordAlsoInsidePackedBatches) {
    LogConfig config;
    config.segment_bytes = 600;
    config.index_interval_bytes = 0;
    auto log = open(0, config);
    const std::int64_t t = 1'700'000'000'000;
    for (const auto offset : {0, 100, 50, 300, 200}) {  // unsorted on purpose
        append_durably(
            *log,
            {.records = 10, .timestamp_ms = t + offset, .compression = wire::Compression::kGzip});
    }
    const auto find = [&](std::int64_t time) {
        const auto found = log->first_at_or_after(time, Isolation::kReadUncommitted);
        EXPECT_TRUE(found) << found.error().context;
        return found && *found ? (*found)->offset.value() : -1;
    };
    EXPECT_EQ(find(0), 0);
    EXPECT_EQ(find(t + 3), 3);
    EXPECT_EQ(find(t + 10), 10);
    EXPECT_EQ(find(t + 105), 15);
    EXPECT_EQ(find(t + 110), 30);
    EXPECT_EQ(find(t + 309), 39);
    EXPECT_EQ(find(t + 310), -1);
    const auto newest = log->of_max_timestamp();
    ASSERT_TRUE(newest && *newest);
    EXPECT_EQ(**newest, (OffsetAndTimestamp{base::Offset{39}, t + 309, base::LeaderEpoch{0}}));
    EXPECT_GT(broker_->log_dir.time_site().decoded(), 0);
    EXPECT_EQ(broker_->log_dir.produce_site().decoded(), 0);
}

TEST_F(PartitionLogTest, AnEmptyLogHasEndsButNoTimes) {
    auto log = open(2);
    EXPECT_EQ(log->earliest().offset, base::Offset{0});
    EXPECT_EQ(log->earliest().leader_epoch, base::LeaderEpoch{2});
    EXPECT_EQ(log->latest(Isolation::kReadUncommitted).leader_epoch, base::LeaderEpoch{2});
    EXPECT_FALSE(*log->of_max_timestamp());
    EXPECT_FALSE(*log->first_at_or_after(0, Isolation::kReadUncommitted));
    EXPECT_EQ(*log->end_of_epoch(base::LeaderEpoch{2}, -1),
              (LeaderEpochs::End{base::LeaderEpoch{2}, base::Offset{0}}));
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
