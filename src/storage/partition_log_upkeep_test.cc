// Goal: what a log lets go of is gone for every later reader and every later life, its files go
// after their delay, and nobody who holds one is disturbed. Method: one broker on a volume in
// memory; the test moves the clock and drives cycles and upkeep.

#include "storage/partition_log.h"
#include "storage/testing_log.h"

#include <gtest/gtest.h>

#include <atomic>
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
using testing::make_batch;
using testing::read_all;
using testing::read_values;
using testing::to_append;

constexpr auto kAll = Isolation::kReadUncommitted;
constexpr auto kDirectory = "topic.AAAAAAAAAAAAAAAAAAAAAA/0";

class UpkeepTest : public ::testing::Test {
protected:
    UpkeepTest() {
        config_.segment_bytes = 400;
        config_.retention_ms = 60'000;
        config_.file_delete_delay_ms = 10'000;
    }

    [[nodiscard]] std::shared_ptr<PartitionLog> open(std::int32_t epoch) {
        auto opened = broker_->open(epoch, config_, lowest_, lowest_ > 0);
        EXPECT_TRUE(opened) << opened.error().context;
        return opened ? *opened : nullptr;
    }
    struct Age {
        std::int64_t older_ms = 0;
    };
    /// One batch a segment, as old as the clock says, or older.
    void fill(PartitionLog& log, int segments, Age age = {.older_ms = 0}) {
        for (int i = 0; i < segments; ++i) {
            Answer answer;
            auto batch =
                make_batch({.value_bytes = 200, .timestamp_ms = clock_.wall_ms() - age.older_ms});
            ASSERT_TRUE(
                log.append(to_append(batch, Acks::kAll, broker_->executor, answer.receiver())));
            broker_->commit_all();
            ASSERT_TRUE(answer.good());
        }
    }
    void retain(PartitionLog& log) {
        log.retain();
        broker_->commit_all();
    }
    [[nodiscard]] Result<base::Offset> delete_records(PartitionLog& log, std::int64_t before) {
        std::optional<Result<base::Offset>> answer;
        log.delete_records(base::Offset{before}, broker_->executor,
                           [&](Result<base::Offset> result) { answer = std::move(result); });
        broker_->commit_all();
        EXPECT_TRUE(answer);
        return answer ? *answer : fail(ErrorCode::kIo, "no answer");
    }
    [[nodiscard]] bool exists(std::int32_t epoch, std::int64_t base) const {
        return volume_
            .open(PartitionPaths{kDirectory}.file({base::LeaderEpoch{epoch}, base::Offset{base}},
                                                  ".log"),
                  OpenMode::kRead)
            .has_value();
    }
    /// From the next step on the log's manifest on, the session is so.
    void turn_session(std::atomic<bool> TestingSession::* how) {
        volume_.set_hook([this, how](const MemoryVolume::Step& step) -> std::optional<Fault> {
            if (step.path.find("manifest") != std::string::npos) broker_->session.*how = true;
            return std::nullopt;
        });
    }
    void restart() { broker_ = std::make_unique<Broker>(volume_, clock_); }

    mutable MemoryVolume volume_;
    base::ManualClock clock_;
    LogConfig config_;
    std::int32_t lowest_ = 0;
    std::unique_ptr<Broker> broker_ = std::make_unique<Broker>(volume_, clock_);
};

TEST_F(UpkeepTest, NothingIsWrittenWhileNothingIsToGo) {
    auto log = open(0);
    fill(*log, 3);
    const auto before = volume_.steps();
    retain(*log);
    EXPECT_EQ(volume_.steps(), before);
}

TEST_F(UpkeepTest, LogWhoseManifestTakesNoLineEndsAndTheNextEpochTrims) {
    auto log = open(0);
    fill(*log, 3);
    volume_.set_hook([](const MemoryVolume::Step& step) -> std::optional<Fault> {
        const bool manifest = step.path.ends_with(".jsonl");
        if (!manifest || step.operation != Operation::kWrite) return std::nullopt;
        return Fault{ErrorCode::kNoSpace};
    });
    const auto refused = delete_records(*log, 2);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kNoSpace);
    volume_.set_hook(nullptr);
    ASSERT_TRUE(log->failure()) << "it can record nothing any more, and must not stay so";
    EXPECT_EQ(log->failure()->code, ErrorCode::kNoSpace);
    auto next = open(1);
    const auto trimmed = delete_records(*next, 2);
    ASSERT_TRUE(trimmed) << trimmed.error().context;
    EXPECT_EQ(*trimmed, base::Offset{2});
}

TEST_F(UpkeepTest, OldSegmentsLeaveTheLogAndThenTheVolume) {
    auto log = open(0);
    fill(*log, 2);
    clock_.advance(std::chrono::seconds(61));
    fill(*log, 2);
    retain(*log);
    EXPECT_EQ(log->view().log_start, base::Offset{2});
    EXPECT_EQ(log->earliest()->offset, base::Offset{2});
    EXPECT_EQ(read_values(*log)->size(), 2);
    EXPECT_EQ(
        log->read({.from = base::Offset{1}, .max_bytes = 1}, Patience::kMayBlock).error().code,
        ErrorCode::kOffsetOutOfRange);
    log->reclaim();
    EXPECT_TRUE(exists(0, 0)) << "until the delay is over";

    EXPECT_GT(log->reclaim_due(), clock_.now());
    clock_.advance(std::chrono::seconds(10));
    EXPECT_LE(log->reclaim_due(), clock_.now());
    log->reclaim();
    EXPECT_FALSE(exists(0, 0));
    EXPECT_FALSE(exists(0, 1));
    EXPECT_TRUE(exists(0, 2));
    EXPECT_EQ(log->reclaim_due(), base::Clock::Steady::max());
}

TEST_F(UpkeepTest, ALogThatIsAllOldIsRolledAndEmptied) {
    auto log = open(0);
    fill(*log, 2);
    clock_.advance(std::chrono::seconds(61));
    retain(*log);
    EXPECT_EQ(log->view().log_start, base::Offset{2});
    EXPECT_EQ(log->view().bytes(), 0U);
    EXPECT_TRUE(read_values(*log)->empty());
    fill(*log, 1);
    EXPECT_EQ(log->latest(Isolation::kReadUncommitted)->offset, base::Offset{3});
}

TEST_F(UpkeepTest, AgesAreExactAfterARestart) {
    auto log = open(0);
    fill(*log, 1);
    clock_.advance(std::chrono::seconds(30));
    fill(*log, 1);
    ASSERT_TRUE(log->release(std::chrono::seconds(1)));
    restart();
    log = open(1);
    clock_.advance(std::chrono::seconds(31));
    const auto before = volume_.steps();
    retain(*log);
    EXPECT_GT(volume_.steps(), before);
    EXPECT_EQ(log->view().log_start, base::Offset{1}) << "the second is 31 s old, the first 61 s";
    clock_.advance(std::chrono::seconds(30));
    retain(*log);
    EXPECT_EQ(log->view().log_start, base::Offset{2});
    EXPECT_EQ(log->written_epoch(), base::LeaderEpoch{1});
}

TEST_F(UpkeepTest, RecordsWithoutTimeAreAsOldAsTheirAppend) {
    auto log = open(0);
    Answer answer;
    auto batch = make_batch({.timestamp_ms = -1});
    ASSERT_TRUE(log->append(to_append(batch, Acks::kAll, broker_->executor, answer.receiver())));
    broker_->commit_all();
    ASSERT_TRUE(log->release(std::chrono::seconds(1)));
    restart();
    log = open(1);
    clock_.advance(std::chrono::seconds(60));
    retain(*log);
    EXPECT_EQ(log->view().log_start, base::Offset{0});
    clock_.advance(std::chrono::seconds(1));
    retain(*log);
    EXPECT_EQ(log->view().log_start, base::Offset{1});
}

TEST_F(UpkeepTest, AReaderGoesOnInASegmentWhoseFileIsGone) {
    auto log = open(0);
    fill(*log, 3);
    auto held = log->read({.from = base::Offset{0}, .max_bytes = 1 << 20}, Patience::kMayBlock);
    ASSERT_TRUE(held);
    ASSERT_TRUE(delete_records(*log, 2));
    clock_.advance(std::chrono::seconds(10));
    log->reclaim();
    ASSERT_FALSE(exists(0, 0));
    std::vector<std::byte> bytes(held->records.length);
    EXPECT_TRUE(
        read_exactly(*held->records.file, held->records.offset, bytes, Patience::kMayBlock));
}

TEST_F(UpkeepTest, AFencedBrokerMovesNothingThatAReaderSees) {
    auto log = open(0);
    fill(*log, 3);
    broker_->session.fenced = true;
    const auto answer = delete_records(*log, 2);
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, ErrorCode::kFenced);
    EXPECT_EQ(log->view().log_start, base::Offset{0});
    EXPECT_TRUE(exists(0, 0));
}

TEST_F(UpkeepTest, ABrokerThatIsFencedBehindItsLineMovesNothingEither) {
    auto log = open(0);
    fill(*log, 3);
    turn_session(&TestingSession::fenced);
    EXPECT_EQ(delete_records(*log, 2).error().code, ErrorCode::kFenced);
    EXPECT_EQ(log->view().log_start, base::Offset{0});
}

TEST_F(UpkeepTest, ALogWhoseManifestMayBeAheadOfItsReadersEnds) {
    auto log = open(0);
    fill(*log, 3);
    turn_session(&TestingSession::silent);
    EXPECT_EQ(delete_records(*log, 2).error().code, ErrorCode::kIo);
    volume_.set_hook({});
    broker_->session.silent = false;
    ASSERT_TRUE(log->failure()) << "its line is durable, and nobody sees what it says";
    EXPECT_EQ(delete_records(*log, 1).error().code, ErrorCode::kIo);
    restart();
    log = open(1);
    EXPECT_EQ(log->view().log_start, base::Offset{2});
    EXPECT_EQ(read_values(*log)->size(), 1);
    clock_.advance(std::chrono::seconds(10));
    log->reclaim();
    broker_->commit_all();
    log->reclaim();
    EXPECT_FALSE(exists(0, 0));
}

TEST_F(UpkeepTest, TimesAreLookedUpInWhatIsLeftWhenASegmentGoesMeanwhile) {
    config_.file_delete_delay_ms = 0;
    auto log = open(0);
    fill(*log, 1);
    fill(*log, 1, {.older_ms = 7});
    ASSERT_TRUE(log->release(std::chrono::seconds(1)));
    restart();
    log = open(1);
    fill(*log, 1, {.older_ms = 9});
    ASSERT_TRUE(log->release(std::chrono::seconds(1)));
    for (const auto& [before, looks_up] :
         {std::pair{1, +[](PartitionLog& asked) { return asked.first_at_or_after(0, kAll); }},
          std::pair{2, +[](PartitionLog& asked) { return asked.of_max_timestamp(kAll); }}}) {
        restart();
        log = open(1 + before);
        const auto& first = *log->view().sealed->front().segment;
        volume_.set_hook([&](const MemoryVolume::Step& step) -> std::optional<Fault> {
            if (step.operation != Operation::kOpen || step.path != first.path()) return {};
            volume_.set_hook({});
            EXPECT_EQ(*delete_records(*log, before), base::Offset{before});
            log->reclaim();
            return {};
        });
        const auto found = looks_up(*log);
        ASSERT_TRUE(found) << found.error().context;
        ASSERT_TRUE(*found);
        EXPECT_EQ((*found)->offset, base::Offset{before});
        EXPECT_EQ((*found)->timestamp_ms, clock_.wall_ms() - (before == 1 ? 7 : 9));
        ASSERT_TRUE(log->release(std::chrono::seconds(1)));
    }
    EXPECT_FALSE(exists(0, 0));
    EXPECT_FALSE(exists(0, 1));
}

TEST_F(UpkeepTest, TheNewestRecordIsNamedWhileItsSegmentIsThere) {
    config_.segment_bytes = 1 << 20;
    auto log = open(0);
    fill(*log, 1);
    fill(*log, 1, {.older_ms = 7});
    ASSERT_TRUE(delete_records(*log, 1));
    EXPECT_EQ((*log->of_max_timestamp(kAll))->offset, base::Offset{0})
        << "as Apache, though it was deleted";
}

TEST_F(UpkeepTest, AFencedBrokerUnlinksNothing) {
    auto log = open(0);
    fill(*log, 3);
    ASSERT_TRUE(delete_records(*log, 2));
    broker_->session.fenced = true;
    clock_.advance(std::chrono::seconds(10));
    log->reclaim();
    EXPECT_TRUE(exists(0, 0));
}

TEST_F(UpkeepTest, WhatALifeDroppedTheNextOneRemoves) {
    auto log = open(0);
    fill(*log, 3);
    ASSERT_TRUE(delete_records(*log, 2));
    ASSERT_TRUE(log->release(std::chrono::seconds(1)));
    restart();
    log = open(1);
    EXPECT_TRUE(exists(0, 0));
    clock_.advance(std::chrono::seconds(10));
    ASSERT_LE(log->reclaim_due(), clock_.now());
    log->reclaim();
    EXPECT_TRUE(exists(0, 0)) << "not before its own picture is durable";
    broker_->commit_all();
    ASSERT_LE(log->reclaim_due(), clock_.now());
    log->reclaim();
    EXPECT_FALSE(exists(0, 0));
    EXPECT_TRUE(exists(0, 2));
}

TEST_F(UpkeepTest, AnEpochOfWhichNothingIsLeftGoesWhole) {
    auto log = open(0);
    fill(*log, 2);
    ASSERT_TRUE(log->release(std::chrono::seconds(1)));
    restart();
    log = open(3);
    fill(*log, 1);
    clock_.advance(std::chrono::seconds(10));
    log->reclaim();
    EXPECT_EQ(*volume_.list(kDirectory), (std::vector<std::string>{"00000000", "00000003"}))
        << "voids between the two go, what is live stays";
    ASSERT_TRUE(delete_records(*log, 2));
    clock_.advance(std::chrono::seconds(10));
    log->reclaim();
    EXPECT_EQ(*volume_.list(kDirectory), (std::vector<std::string>{"00000003"}));
    ASSERT_TRUE(log->release(std::chrono::seconds(1)));
    restart();
    lowest_ = 3;
    log = open(4);
    EXPECT_EQ(read_values(*log)->size(), 1);
}

TEST_F(UpkeepTest, FilesThatCannotBeRemovedAreTriedAgain) {
    auto log = open(0);
    fill(*log, 2);
    ASSERT_TRUE(delete_records(*log, 1));
    clock_.advance(std::chrono::seconds(10));
    volume_.set_hook([](const MemoryVolume::Step& step) -> std::optional<Fault> {
        if (step.operation != Operation::kUnlink) return std::nullopt;
        return Fault{.code = ErrorCode::kIo};
    });
    log->reclaim();
    EXPECT_TRUE(exists(0, 0));
    EXPECT_GT(log->reclaim_due(), clock_.now());
    volume_.set_hook({});
    clock_.advance(std::chrono::seconds(30));
    log->reclaim();
    EXPECT_FALSE(exists(0, 0));
}

TEST_F(UpkeepTest, DeletedRecordsStayDeleted) {
    auto log = open(0);
    fill(*log, 3);
    EXPECT_EQ(*delete_records(*log, 1), base::Offset{1});
    EXPECT_EQ(*delete_records(*log, 0), base::Offset{1}) << "a log start never goes back";
    volume_.crash({});
    restart();
    log = open(1);
    EXPECT_EQ(log->view().log_start, base::Offset{1});
    EXPECT_EQ(read_values(*log)->size(), 2);
}

TEST_F(UpkeepTest, RecordsGoUpToTheHighWatermarkAndNoFurther) {
    auto log = open(0);
    EXPECT_EQ(*delete_records(*log, -1), base::Offset{0}) << "of an empty log";
    fill(*log, 3);
    EXPECT_EQ(delete_records(*log, 4).error().code, ErrorCode::kOffsetOutOfRange);
    EXPECT_EQ(delete_records(*log, -2).error().code, ErrorCode::kOffsetOutOfRange);
    EXPECT_EQ(*delete_records(*log, -1), base::Offset{3});
    EXPECT_TRUE(read_values(*log)->empty());
    EXPECT_EQ(log->latest(Isolation::kReadCommitted)->offset, base::Offset{3});
}

TEST_F(UpkeepTest, AnOffsetBehindTheEndIsCalledSoOnlyAfterASessionCheck) {
    auto log = open(0);
    broker_->session.fenced = true;
    EXPECT_EQ(delete_records(*log, 4).error().code, ErrorCode::kFenced);
}

TEST_F(UpkeepTest, ALogStartIsNeverAheadOfWhatIsOnTheDisk) {
    config_.flush_messages = 1000;
    auto log = open(0);
    fill(*log, 1);
    EXPECT_EQ(*delete_records(*log, 1), base::Offset{1});
    volume_.crash({});
    restart();
    log = open(1);
    ASSERT_NE(log, nullptr);
    EXPECT_EQ(log->latest(Isolation::kReadUncommitted)->offset, base::Offset{1});
    EXPECT_EQ(log->view().log_start, base::Offset{1});
}

TEST_F(UpkeepTest, WhoeverWaitsForANewStartHearsOfTheEnd) {
    auto log = open(0);
    fill(*log, 1);
    std::optional<Result<base::Offset>> answer;
    log->delete_records(base::Offset{1}, broker_->executor,
                        [&](Result<base::Offset> result) { answer = std::move(result); });
    ASSERT_FALSE(answer);
    log->abandon(ErrorCode::kClosed);
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->error().code, ErrorCode::kClosed);
    EXPECT_EQ(delete_records(*log, 1).error().code, ErrorCode::kClosed);
}

TEST_F(UpkeepTest, AProducerThatWasForgottenMayBeginAnywhere) {
    auto log = open(0);
    const auto send = [&](std::int32_t sequence) {
        Answer answer;
        const auto batch =
            make_batch({.producer_id = 7, .producer_epoch = 0, .sequence = sequence});
        const auto taken =
            log->append(to_append(batch, Acks::kAll, broker_->executor, answer.receiver()));
        broker_->commit_all();
        return taken.has_value();
    };
    ASSERT_TRUE(send(0));
    clock_.advance(std::chrono::hours(24) - std::chrono::milliseconds(1));
    log->expire_producers();
    EXPECT_FALSE(send(42)) << "it is known still";
    clock_.advance(std::chrono::milliseconds(1));
    log->expire_producers();
    EXPECT_TRUE(send(42));
    clock_.advance(std::chrono::hours(24));
    ASSERT_TRUE(log->release(std::chrono::seconds(1)));
    restart();
    log = open(1);
    EXPECT_TRUE(send(7)) << "no life remembers it longer";
}

TEST_F(UpkeepTest, EpochsBeforeTheStartAreForgotten) {
    auto log = open(0);
    fill(*log, 2);
    ASSERT_TRUE(log->release(std::chrono::seconds(1)));
    restart();
    log = open(1);
    fill(*log, 2);
    EXPECT_EQ(log->end_of_epoch(base::LeaderEpoch{0}, -1)->offset, base::Offset{2});
    ASSERT_TRUE(delete_records(*log, 3));
    EXPECT_EQ(log->end_of_epoch(base::LeaderEpoch{0}, -1)->offset, base::Offset{3})
        << "as Apache: where the oldest known epoch begins";
    EXPECT_EQ(log->earliest()->leader_epoch, base::LeaderEpoch{1});
}

}  // namespace
}  // namespace kaas::storage
