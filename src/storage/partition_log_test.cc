// Goal: a partition's log gives offsets, makes batches durable and visible as its cycles say,
// answers as asked, and serves readers whole batches. Method: one broker on a volume in memory; the
// test drives the cycles, and takes them apart where something must happen in between.

#include "storage/partition_log.h"

#include "storage/testing_log.h"

#include <gtest/gtest.h>

namespace kaas::storage {
namespace {

using testing::Answer;
using testing::BatchOptions;
using testing::Broker;
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
        return log.append(to_append(make_batch(batch), acks, broker_->executor, answer.receiver()));
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

TEST_F(PartitionLogTest, NothingIsMadeForAPartitionThatIsNeverWritten) {
    const auto before = volume_.steps();
    auto log = open(0);
    EXPECT_EQ(volume_.steps(), before);
    EXPECT_EQ(log->latest(Isolation::kReadUncommitted).offset, base::Offset{0});
    EXPECT_FALSE(log->written_epoch());
    ASSERT_TRUE(read_all(*log, base::Offset{0}));
    ASSERT_TRUE(log->release(std::chrono::seconds(1)));
    EXPECT_EQ(volume_.steps(), before);
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

}  // namespace
}  // namespace kaas::storage
