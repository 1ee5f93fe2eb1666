// Goal: many logs that begin, recover or are released together keep what they acknowledged, at
// whatever step the machine dies; to open a log that ended well costs the same however long it is,
// and writes nothing. Method: a volume in memory that counts steps, halts at each of them in turn,
// and then loses what was not synced.
#include "storage/memory_volume.h"
#include "storage/partition_log.h"
#include "storage/testing_log.h"

#include <gtest/gtest.h>

#include <algorithm>
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

using testing::Answer;
using testing::Broker;
using testing::make_batch;
using testing::read_values;
using testing::to_append;

constexpr std::size_t kLogs = 10;
static_assert(kLogs >= kWorthSyncingAll);

class ManyLogsTest : public ::testing::Test {
protected:
    using Logs = std::vector<Result<std::shared_ptr<PartitionLog>>>;

    Logs open(Broker& broker, std::int32_t epoch, std::int32_t written = -1,
              std::size_t count = kLogs) {
        std::vector<PartitionLogOptions> options;
        for (std::size_t i = 0; i < count; ++i) {
            options.push_back(
                {.log_dir = &broker.log_dir,
                 .directory = "topic.AAAAAAAAAAAAAAAAAAAAAA/" + std::to_string(i),
                 .epoch = base::LeaderEpoch{epoch},
                 .earlier = candidates_below(*volume_, epoch, std::max(written, 0), written >= 0),
                 .config = config_});
        }
        return PartitionLog::open_together(std::move(options));
    }
    /// A batch to each log that is open; gives how many of them were acknowledged, by log.
    std::vector<bool> append_to_all(Broker& broker, Logs& logs, const std::string& value) {
        std::vector<Answer> answers(logs.size());
        for (std::size_t i = 0; i < logs.size(); ++i) {
            if (!logs[i]) continue;
            std::ignore = (*logs[i])->append(to_append(make_batch({.value = value}), Acks::kAll,
                                                       broker.executor, answers[i].receiver()));
        }
        broker.commit_all();
        std::vector<bool> acknowledged;
        for (const auto& answer : answers) acknowledged.push_back(answer.good());
        return acknowledged;
    }
    /// Those of them that could write their last line.
    static std::vector<bool> release_all(const Logs& logs) {
        std::vector<std::shared_ptr<PartitionLog>> open;
        for (const auto& log : logs) open.push_back(*log);
        std::vector<bool> released;
        for (const auto& one : PartitionLog::release_together(open, std::chrono::milliseconds(0)))
            released.push_back(one.has_value());
        return released;
    }
    /// Whether the log, when it was opened, could trust all that it found.
    static bool serves_what_was_there(const PartitionLog& log) {
        return log.written_epoch() < log.epoch();
    }
    void restart_volume() { volume_ = std::make_unique<MemoryVolume>(); }

    std::unique_ptr<MemoryVolume> volume_ = std::make_unique<MemoryVolume>();
    base::ManualClock clock_;
    LogConfig config_;
};

TEST_F(ManyLogsTest, BeginTogetherWithTwoSyncsOfEverything) {
    std::map<Operation, int> calls;
    volume_->set_hook([&](const MemoryVolume::Step& step) {
        ++calls[step.operation];
        return std::optional<Fault>();
    });
    Broker broker(*volume_, clock_);
    auto logs = open(broker, 0);
    for (bool good : append_to_all(broker, logs, "a")) EXPECT_TRUE(good);
    EXPECT_EQ(calls[Operation::kSyncAll], 2);
    EXPECT_EQ(calls[Operation::kSyncDirectory], 0);
    EXPECT_EQ(calls[Operation::kSync], static_cast<int>(kLogs)) << "of the segments alone";
}

TEST_F(ManyLogsTest, DeathAtAnyStepOfBeginningTogether) {
    bool reached_the_end = false;
    for (std::uint64_t step = 0; !reached_the_end; ++step) {
        SCOPED_TRACE(step);
        restart_volume();
        volume_->halt_at(step);
        std::vector<bool> acknowledged;
        {
            Broker broker(*volume_, clock_);
            auto logs = open(broker, 0);
            acknowledged = append_to_all(broker, logs, "a");
            reached_the_end = volume_->steps() <= step;
            for (auto& log : logs) {
                if (log) (*log)->abandon(ErrorCode::kClosed);
            }
        }
        volume_->crash({.seed = step});
        Broker next(*volume_, clock_);
        auto logs = open(next, 1);
        for (std::size_t i = 0; i < kLogs; ++i) {
            ASSERT_TRUE(logs[i]) << logs[i].error().context;
            const auto values = read_values(**logs[i]);
            ASSERT_TRUE(values) << values.error().context;
            if (acknowledged[i]) EXPECT_EQ(*values, std::vector<std::string>{"a"}) << i;
        }
    }
}

TEST_F(ManyLogsTest, DeathAtAnyStepOfRecoveringTogether) {
    bool reached_the_end = false;
    for (std::uint64_t step = 0; !reached_the_end; ++step) {
        SCOPED_TRACE(step);
        restart_volume();
        std::vector<bool> before;
        {
            Broker broker(*volume_, clock_);
            auto logs = open(broker, 0);
            before = append_to_all(broker, logs, "a");
            for (auto& log : logs) (*log)->abandon(ErrorCode::kClosed);
        }
        volume_->crash();
        const auto began = volume_->steps();
        volume_->halt_at(began + step);
        std::vector<bool> after;
        {
            Broker broker(*volume_, clock_);
            auto logs = open(broker, 1, 0);
            after = append_to_all(broker, logs, "b");
            reached_the_end = volume_->steps() <= began + step;
            for (auto& log : logs) {
                if (log) (*log)->abandon(ErrorCode::kClosed);
            }
        }
        volume_->crash({.seed = step});
        Broker next(*volume_, clock_);
        auto logs = open(next, 2, 0);
        for (std::size_t i = 0; i < kLogs; ++i) {
            ASSERT_TRUE(logs[i]) << logs[i].error().context;
            const auto values = read_values(**logs[i]);
            ASSERT_TRUE(values) << values.error().context;
            ASSERT_TRUE(before[i]);
            ASSERT_GE(values->size(), after[i] ? 2U : 1U) << i;
            EXPECT_EQ(values->front(), "a");
        }
    }
}

TEST_F(ManyLogsTest, FailedSyncOfEverythingFailsAllOfThem) {
    volume_->fail_nth(Operation::kSyncAll, 2, {});
    Broker broker(*volume_, clock_);
    auto logs = open(broker, 0);
    for (bool good : append_to_all(broker, logs, "a")) EXPECT_FALSE(good);
    for (auto& log : logs) EXPECT_TRUE((*log)->failure());
}

TEST_F(ManyLogsTest, ReleaseTogetherWithTwoSyncsOfEverything) {
    Broker broker(*volume_, clock_);
    auto logs = open(broker, 0);
    (void)append_to_all(broker, logs, "a");
    std::map<Operation, int> calls;
    volume_->set_hook([&](const MemoryVolume::Step& step) {
        ++calls[step.operation];
        return std::optional<Fault>();
    });
    for (bool released : release_all(logs)) EXPECT_TRUE(released);
    EXPECT_EQ(calls[Operation::kSyncAll], 2);
    EXPECT_EQ(calls[Operation::kSync], 0);
    EXPECT_EQ(calls[Operation::kSyncDirectory], 0);
}

TEST_F(ManyLogsTest, DeathAtAnyStepOfBeingReleasedTogether) {
    constexpr std::uint64_t kFates = 4;  // of each step
    config_.flush_messages = 1'000;      // so that the release has batches to make durable
    bool reached_the_end = false;
    for (std::uint64_t seed = 0; !reached_the_end || seed % kFates != 0; ++seed) {
        SCOPED_TRACE(seed);
        restart_volume();
        std::vector<bool> released;
        {
            Broker broker(*volume_, clock_);
            auto logs = open(broker, 0);
            for (bool good : append_to_all(broker, logs, "a")) ASSERT_TRUE(good);
            const auto dies = volume_->steps() + seed / kFates;
            volume_->halt_at(dies);
            released = release_all(logs);
            reached_the_end = volume_->steps() <= dies;
            EXPECT_EQ(std::ranges::count(released, reached_the_end), kLogs) << "all or none";
        }
        volume_->crash({.seed = seed, .holes = true});
        Broker next(*volume_, clock_);
        auto logs = open(next, 1, 0);
        for (std::size_t i = 0; i < kLogs; ++i) {
            ASSERT_TRUE(logs[i]) << logs[i].error().context;
            const auto values = read_values(**logs[i]);
            ASSERT_TRUE(values) << values.error().context;
            // A last line, whoever was told of it, stands only where all that it says is true.
            const bool last_line = serves_what_was_there(**logs[i]);
            if (released[i]) EXPECT_TRUE(last_line) << i;
            if (last_line) EXPECT_EQ(*values, std::vector<std::string>{"a"}) << i;
            (*logs[i])->abandon(ErrorCode::kClosed);
        }
    }
}

TEST_F(ManyLogsTest, FailedSyncOfEverythingReleasesNoneOfThem) {
    for (int nth : {1, 2}) {
        SCOPED_TRACE(nth);
        restart_volume();
        {
            Broker broker(*volume_, clock_);
            auto logs = open(broker, 0);
            (void)append_to_all(broker, logs, "a");
            volume_->fail_nth(Operation::kSyncAll, static_cast<std::uint64_t>(nth), {});
            for (bool released : release_all(logs)) EXPECT_FALSE(released);
        }
        volume_->crash();
        Broker next(*volume_, clock_);
        auto logs = open(next, 1, 0);
        for (auto& log : logs) {
            ASSERT_TRUE(log) << log.error().context;
            EXPECT_FALSE(serves_what_was_there(**log));
            EXPECT_EQ(*read_values(**log), std::vector<std::string>{"a"});
        }
    }
}

TEST_F(ManyLogsTest, NothingIsRemovedBeforeTheNewPicturesAreDurable) {
    {
        Broker broker(*volume_, clock_);
        auto logs = open(broker, 0);
        (void)append_to_all(broker, logs, "a");
        for (auto& log : logs) (*log)->abandon(ErrorCode::kClosed);
    }
    {
        Broker broker(*volume_, clock_);  // recovers into epoch 1, so nothing of epoch 0 is left
        auto logs = open(broker, 1, 0);
        for (auto& log : logs) ASSERT_TRUE((*log)->release(std::chrono::milliseconds(0)));
    }
    Broker broker(*volume_, clock_);
    auto logs = open(broker, 2, 1);
    const auto upkeep = [&] {
        clock_.advance(std::chrono::milliseconds(config_.file_delete_delay_ms));
        for (auto& log : logs) {
            (*log)->reclaim();
            if ((*log)->begin_compaction()) (*log)->end_compaction();
        }
    };
    int syncs = 0;
    int removed = 0;
    int compacts = 0;
    volume_->set_hook([&](const MemoryVolume::Step& step) {
        if (step.operation == Operation::kRemoveDirectory) ++removed;
        if (step.operation == Operation::kSyncAll && ++syncs == 2) {
            upkeep();
            EXPECT_EQ(removed, 0);
            compacts += static_cast<int>((*logs[0])->begin_compaction());
        }
        return std::optional<Fault>();
    });
    for (bool good : append_to_all(broker, logs, "b")) EXPECT_TRUE(good);
    ASSERT_EQ(syncs, 2);
    EXPECT_EQ(compacts, 0);
    upkeep();
    EXPECT_EQ(removed, static_cast<int>(kLogs)) << "a test of nothing";
    volume_->set_hook({});
}

TEST_F(ManyLogsTest, CleanOpeningCostsTheSameForAnyLength) {
    config_.segment_bytes = 2000;
    std::vector<std::map<Operation, int>> costs;
    std::int32_t epoch = 0;
    for (int batches : {1, 200}) {
        {
            Broker broker(*volume_, clock_);
            auto logs = open(broker, epoch, epoch - 1, 1);
            ASSERT_TRUE(logs[0]) << logs[0].error().context;
            for (int i = 0; i < batches; ++i) (void)append_to_all(broker, logs, "value");
            ASSERT_TRUE((*logs[0])->release(std::chrono::milliseconds(0)));
        }
        auto& calls = costs.emplace_back();
        volume_->set_hook([&](const MemoryVolume::Step& step) {
            ++calls[step.operation];
            return std::optional<Fault>();
        });
        Broker broker(*volume_, clock_);
        auto logs = open(broker, epoch + 1, epoch, 1);
        ASSERT_TRUE(logs[0]) << logs[0].error().context;
        volume_->set_hook({});
        EXPECT_EQ((*logs[0])->written_epoch(), base::LeaderEpoch{epoch});
        for (const auto changing : {Operation::kCreate, Operation::kWrite, Operation::kSync,
                                    Operation::kMakeDirectory, Operation::kSyncDirectory})
            EXPECT_EQ(calls[changing], 0) << name_of(changing);
        (*logs[0])->abandon(ErrorCode::kClosed);
        ++epoch;
    }
    EXPECT_EQ(costs[0], costs[1]);
}

}  // namespace
}  // namespace kaas::storage
