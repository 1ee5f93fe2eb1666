// Goal: cleaner threads take the dirtiest log that is dirty enough, keep to their budget, and leave
// alone what cannot be compacted instead of trying it for ever.
#include "storage/log_cleaner.h"

#include "base/metrics.h"
#include "storage/io_budget.h"
#include "storage/testing_compaction.h"
#include "storage/testing_log.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace kaas::storage {
namespace {

using namespace std::chrono_literals;
using testing::Answer;
using testing::Broker;
using testing::look_at;
using testing::make_keyed_batch;

class LogCleanerTest : public ::testing::Test {
protected:
    LogCleanerTest() {
        config_.compacted = true;
        config_.segment_bytes = 500;
    }

    LogPtr open(const std::string& topic) {
        auto opened = PartitionLog::open({.log_dir = &broker_.log_dir,
                                          .directory = topic + ".AAAAAAAAAAAAAAAAAAAAAA/0",
                                          .epoch = base::LeaderEpoch{0},
                                          .earlier = {},
                                          .config = config_});
        EXPECT_TRUE(opened.has_value()) << opened.error().context;
        logs_.push_back(*opened);
        return *opened;
    }

    void produce(PartitionLog& log, const std::string& key, int count = 1) {
        for (int i = 0; i < count; ++i) {
            Answer answer;
            const auto bytes = make_keyed_batch(
                {.records = {{key, std::string(60, 'v')}}, .timestamp_ms = clock_.wall_ms()});
            EXPECT_TRUE(
                log.append(testing::to_append(bytes, Acks::kAll, home_, answer.receiver())));
            broker_.commit_all();
            EXPECT_TRUE(answer.good());
        }
    }

    [[nodiscard]] std::unique_ptr<LogCleaner> cleaner(CleanerConfig config = {}) {
        return std::make_unique<LogCleaner>(LogCleaner::Options{.config = config,
                                                                .logs = [this] { return logs_; },
                                                                .clock = &clock_,
                                                                .metrics = &metrics_});
    }

    [[nodiscard]] std::uint64_t runs(const std::string& result) {
        return metrics_.counter("kaas_compaction_runs_total", "", {{"result", result}}).value();
    }

    MemoryVolume volume_;
    base::ManualClock clock_;
    base::InlineExecutor home_;
    base::metrics::Registry metrics_;
    LogConfig config_;
    Broker broker_{volume_, clock_};
    std::vector<LogPtr> logs_;
};

TEST_F(LogCleanerTest, TheDirtiestComesFirst) {
    auto half = open("half");
    auto cleaner = this->cleaner();
    produce(*half, "a", 20);
    ASSERT_TRUE(cleaner->run_once());
    produce(*half, "filler-1", 7);
    auto all = open("all");
    produce(*all, "a", 20);
    ASSERT_TRUE(cleaner->run_once());
    EXPECT_GT(all->compaction_sight().clean_to, base::Offset{0});
    EXPECT_LT(half->compaction_sight().clean_to, base::Offset{20});
    ASSERT_TRUE(cleaner->run_once());
    EXPECT_GT(half->compaction_sight().clean_to, base::Offset{20});
    EXPECT_FALSE(cleaner->run_once());
    EXPECT_EQ(runs("done"), 3u);
}

TEST_F(LogCleanerTest, OnlyCompactedLogsAreTouched) {
    config_.compacted = false;
    auto log = open("deleted-by-time");
    produce(*log, "a", 20);
    EXPECT_FALSE(cleaner()->run_once());
}

TEST_F(LogCleanerTest, CleanEnoughIsLeftAlone) {
    auto log = open("topic");
    auto cleaner = this->cleaner();
    for (int i = 0; i < 30; ++i) produce(*log, "key-" + std::to_string(i));
    ASSERT_TRUE(cleaner->run_once());
    produce(*log, "key-0", 8);
    EXPECT_FALSE(cleaner->run_once()) << "less than half is dirty";
    config_.min_cleanable_ratio = 0.1;
    log->set_config(config_);
    EXPECT_TRUE(cleaner->run_once());
}

TEST_F(LogCleanerTest, OverdueRecordsMakeALogDue) {
    config_.min_cleanable_ratio = 1;
    config_.max_compaction_lag_ms = 10'000;
    auto log = open("topic");
    auto cleaner = this->cleaner();
    produce(*log, "a", 20);
    clock_.advance(10'000ms);
    EXPECT_FALSE(cleaner->run_once());
    clock_.advance(1ms);
    EXPECT_TRUE(cleaner->run_once());
    EXPECT_FALSE(cleaner->run_once());
}

TEST_F(LogCleanerTest, DamagedLogIsCountedAndLeftAlone) {
    auto log = open("damaged");
    auto good = open("good");
    produce(*log, "a", 40);
    produce(*good, "a", 20);
    auto file =
        volume_.open(log->view().sealed->front().segment->path(), OpenMode::kReadWrite).value();
    const std::byte bad[] = {std::byte{0xFF}};
    const base::ByteView piece(bad);
    ASSERT_TRUE(file->write_at(70, {&piece, 1}));
    auto cleaner = this->cleaner();
    ASSERT_TRUE(cleaner->run_once());
    ASSERT_TRUE(cleaner->run_once());
    EXPECT_FALSE(cleaner->run_once()) << "the damaged log is tried again";
    EXPECT_EQ(runs("failed"), 1u);
    EXPECT_EQ(runs("done"), 1u);
    EXPECT_EQ(cleaner->uncleanable(), 1u);
    EXPECT_EQ(metrics_.gauge("kaas_compaction_uncleanable_partitions", "").value(), 1);
    EXPECT_FALSE(log->failure()) << "it serves on";
    log->abandon(ErrorCode::kClosed);
    EXPECT_FALSE(cleaner->run_once());
    EXPECT_EQ(cleaner->uncleanable(), 0u);
}

TEST_F(LogCleanerTest, GoesOnWhenSpaceReturns) {
    auto log = open("topic");
    produce(*log, "a", 20);
    volume_.fail_nth(Operation::kCreate, 1, {.code = ErrorCode::kNoSpace});
    auto cleaner = this->cleaner();
    EXPECT_TRUE(cleaner->run_once());
    EXPECT_EQ(runs("failed"), 1u);
    EXPECT_TRUE(cleaner->run_once());
    EXPECT_EQ(runs("done"), 1u);
    EXPECT_EQ(cleaner->uncleanable(), 0u);
    EXPECT_EQ(look_at(*log).records.front().offset, log->compaction_sight().clean_to.value() - 1);
}

TEST_F(LogCleanerTest, StoppedCleanerEndsAtItsNextStep) {
    auto log = open("topic");
    produce(*log, "a", 20);
    auto cleaner = this->cleaner();
    cleaner->stop();
    EXPECT_TRUE(cleaner->run_once());
    EXPECT_EQ(runs("stopped"), 1u);
    EXPECT_EQ(look_at(*log).records.size(), 20u);
}

TEST_F(LogCleanerTest, LogThatIsCompactedByAnotherThreadIsNotTaken) {
    auto log = open("topic");
    produce(*log, "a", 20);
    ASSERT_TRUE(log->begin_compaction());
    EXPECT_FALSE(cleaner()->run_once());
    EXPECT_TRUE(log->at_work());
    log->end_compaction();
    EXPECT_FALSE(log->at_work());
    EXPECT_TRUE(cleaner()->run_once());
}

TEST_F(LogCleanerTest, ReleasedLogIsNotCompacted) {
    auto log = open("topic");
    produce(*log, "a", 20);
    ASSERT_TRUE(log->release(1s));
    EXPECT_FALSE(cleaner()->run_once());
}

TEST_F(LogCleanerTest, ThreadsCompactAllThatIsDirty) {
    for (int i = 0; i < 8; ++i) produce(*open("topic-" + std::to_string(i)), "a", 20);
    auto cleaner =
        std::make_unique<LogCleaner>(LogCleaner::Options{.config = {.threads = 2, .backoff = 1ms},
                                                         .logs = [this] { return logs_; },
                                                         .clock = &base::Clock::system(),
                                                         .metrics = &metrics_});
    cleaner->start();
    while (runs("done") < 8 && runs("failed") == 0) std::this_thread::yield();
    cleaner->stop();
    EXPECT_EQ(runs("done"), 8u);
    for (const auto& log : logs_) EXPECT_LT(look_at(*log).records.size(), 20u);
}

TEST(IoBudgetTest, WhoTakesNextWaitsForWhatWasTaken) {
    base::ManualClock clock;
    IoBudget budget(clock, 1000);
    EXPECT_EQ(budget.take(500).count(), 0);
    EXPECT_EQ(budget.take(250), 500ms);
    clock.advance(500ms);
    EXPECT_EQ(budget.take(1), 250ms);
    clock.advance(10s);
    EXPECT_EQ(budget.take(1).count(), 0) << "what was not used is lost";
}

TEST(IoBudgetTest, NoLimitNeverWaits) {
    base::ManualClock clock;
    IoBudget budget(clock, CleanerConfig{}.io_max_bytes_per_second);
    for (int i = 0; i < 100; ++i) EXPECT_EQ(budget.take(1 << 30).count(), 0);
}

TEST(IoBudgetTest, TinyLimitDoesNotOverflow) {
    base::ManualClock clock;
    IoBudget budget(clock, 1e-300);
    EXPECT_EQ(budget.take(1).count(), 0);
    EXPECT_GT(budget.take(1), 1h);
}

}  // namespace
}  // namespace kaas::storage
