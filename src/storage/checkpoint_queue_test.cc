// Goal: the checkpoints of many logs share their syncs, and say nothing that is not
// true at whatever step the machine dies; a sync that fails ends those that counted on it. Method:
// logs with a broker journal on a volume in memory that counts steps, halts at each of them in
// turn, and then loses what was not synced.
#include "storage/checkpoint_queue.h"

#include "base/clock.h"
#include "base/executor.h"
#include "base/uuid.h"
#include "storage/log_dir.h"
#include "storage/memory_volume.h"
#include "storage/partition_log.h"
#include "storage/slot_log.h"
#include "storage/testing_log.h"
#include "storage/testing_session.h"
#include "storage/testing_slot.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace kaas::storage {
namespace {

using namespace std::chrono_literals;
using testing::Answer;
using testing::make_batch;
using testing::read_values;
using testing::TestingSlot;
using testing::to_append;
using Values = std::vector<std::string>;

constexpr std::size_t kLogs = 10;
static_assert(kLogs >= kWorthSyncingAll);

/// So few that what is checkpointed stands in a file that can be trimmed.
constexpr std::uint64_t kJournalFileBytes = 6'000;
const Values kWritten{"a", "b", "c", "d"};

/// One life of a broker with a journal, its partitions and slots.
struct Life {
    Life(Volume& volume, base::Clock& clock, std::int32_t epoch)
        : log_dir({.volume = &volume,
                   .session = &session,
                   .io_pool = &executor,
                   .io_width = 1,
                   .clock = &clock,
                   .owner = {.broker = base::BrokerId{1}, .incarnation = {base::Uuid::random()}},
                   .journal = true,
                   .journal_file_bytes = kJournalFileBytes}) {
        std::vector<PartitionLogOptions> options;
        for (std::size_t i = 0; i < kLogs; ++i) {
            auto earlier = candidates_below(volume, epoch, 0, epoch > 0);
            auto slot = TestingSlot::open(
                testing::slot_options(log_dir, static_cast<std::int32_t>(i), epoch, earlier));
            EXPECT_TRUE(slot) << slot.error().context;
            if (slot) slots.push_back(std::move(*slot));
            options.push_back({.log_dir = &log_dir,
                               .directory = "topic.AAAAAAAAAAAAAAAAAAAAAA/" + std::to_string(i),
                               .epoch = base::LeaderEpoch{epoch},
                               .earlier = std::move(earlier),
                               .config = LogConfig{}});
        }
        for (auto& log : PartitionLog::open_together(std::move(options))) {
            EXPECT_TRUE(log) << log.error().context;
            if (log) logs.push_back(std::move(*log));
        }
    }
    ~Life() { session.fenced = true; }  // a dead process does not close its journal

    /// A value to each partition and slot. True when all are durable.
    bool write(const std::string& value) {
        int good = 0;
        std::vector<Answer> answers(kLogs);
        for (std::size_t i = 0; i < kLogs; ++i) {
            std::ignore = logs[i]->append(to_append(make_batch({.value = value}), Acks::kAll,
                                                    executor, answers[i].receiver()));
            slots[i].add(value);
            slots[i].log->settle(executor,
                                 [&](const Result<void>& outcome) { good += outcome ? 1 : 0; });
        }
        run();
        for (const auto& answer : answers) good += answer.good() ? 1 : 0;
        return good == 2 * kLogs;
    }
    void run() {
        while (log_dir.run_cycle()) {
        }
    }

    TestingSession session;
    base::InlineExecutor executor;
    LogDir log_dir;
    std::vector<LogPtr> logs;
    std::vector<TestingSlot> slots;
};

[[nodiscard]] Values values_of(PartitionLog& log) {
    auto values = read_values(log);
    return values ? std::move(*values) : Values{values.error().context};
}

class CheckpointQueueTest : public ::testing::Test {
protected:
    CheckpointQueueTest() { restart_volume(); }

    void restart_volume() {
        volume_ = std::make_unique<MemoryVolume>();
        testing::make_slots_parent(*volume_);
    }
    /// Written twice: to the files, and then to the journal alone.
    std::unique_ptr<Life> begin() {
        auto life = std::make_unique<Life>(*volume_, clock_, 0);
        for (const auto& value : kWritten) EXPECT_TRUE(life->write(value));
        EXPECT_GT(life->log_dir.journal()->files(), 1U) << "a test of nothing";
        return life;
    }
    void checkpoint(Life& life) {
        clock_.advance(6s);
        life.run();
    }

    std::unique_ptr<MemoryVolume> volume_;
    base::ManualClock clock_;
};

TEST_F(CheckpointQueueTest, ManyLogsShareTheirSyncsAndTheirTakersWriteNothing) {
    auto life = begin();
    std::map<Operation, int> calls;
    volume_->set_hook([&](const MemoryVolume::Step& step) {
        ++calls[step.operation];
        return std::optional<Fault>();
    });
    checkpoint(*life);
    EXPECT_EQ(calls[Operation::kSyncAll], 3) << "one of the slots, whose lines need none";
    EXPECT_EQ(calls[Operation::kSync], 1) << "of the line that trims the journal";
    EXPECT_EQ(calls[Operation::kSyncDirectory], 0);
    volume_->set_hook({});
    life.reset();
    volume_->crash();
    const Life next(*volume_, clock_, 1);
    for (const auto& log : next.logs) {
        EXPECT_EQ(log->written_epoch(), base::LeaderEpoch{0});
        EXPECT_EQ(values_of(*log), kWritten);
    }
    for (const auto& slot : next.slots) {
        EXPECT_FALSE(slot.log->must_write_picture());
        EXPECT_EQ(slot.values, kWritten);
    }
}

TEST_F(CheckpointQueueTest, DeathAtAnyStepOfCheckpointsLosesNothing) {
    constexpr std::uint64_t kFates = 4;  // of each step
    bool reached_the_end = false;
    for (std::uint64_t seed = 0; !reached_the_end || seed % kFates != 0; ++seed) {
        SCOPED_TRACE(seed);
        restart_volume();
        auto life = begin();
        const auto dies = volume_->steps() + seed / kFates;
        volume_->halt_at(dies);
        checkpoint(*life);
        reached_the_end = volume_->steps() <= dies;
        life.reset();
        volume_->crash({.seed = seed, .holes = true});
        const Life next(*volume_, clock_, 1);
        for (const auto& log : next.logs) EXPECT_EQ(values_of(*log), kWritten);
        for (const auto& slot : next.slots) EXPECT_EQ(slot.values, kWritten);
    }
}

TEST_F(CheckpointQueueTest, AFailedSyncOfEverythingEndsThemAndTheJournalHasWhatTheyLost) {
    for (const std::uint64_t nth : {1, 2, 3}) {
        SCOPED_TRACE(nth);
        restart_volume();
        auto life = begin();
        volume_->fail_nth(Operation::kSyncAll, nth, {});
        checkpoint(*life);
        for (const auto& log : life->logs) EXPECT_TRUE(log->failure());
        for (const auto& slot : life->slots)
            EXPECT_EQ(slot.log->failure().has_value(), nth == 1) << "the slots' comes first";
        life.reset();
        volume_->crash();
        const Life next(*volume_, clock_, 1);
        for (const auto& log : next.logs) EXPECT_EQ(values_of(*log), kWritten);
        for (const auto& slot : next.slots) EXPECT_EQ(slot.values, kWritten);
    }
}

TEST_F(CheckpointQueueTest, WhatIsReleasedMeanwhileIsLeftAlone) {
    auto life = begin();
    for (auto& log : life->logs) log->expect_release();
    for (auto& slot : life->slots) slot.log->expect_release();
    const auto steps = volume_->steps();
    checkpoint(*life);
    EXPECT_EQ(volume_->steps(), steps);
}

TEST_F(CheckpointQueueTest, WhatIsQueuedWhenItsLogDirStopsIsDropped) {
    auto life = begin();
    clock_.advance(6s);
    auto cycle = life->log_dir.next_cycle();
    ASSERT_NE(cycle, nullptr);
    cycle->run();
    const std::weak_ptr<PartitionLog> log = life->logs.front();
    cycle.reset();
    life->log_dir.stop();
    life->logs.clear();
    EXPECT_TRUE(log.expired());
}

}  // namespace
}  // namespace kaas::storage
