// Goal: what each of thousands of idle logs costs stays small, and a log that has rested goes on as
// if it had not. Method: logs in a real directory; what the heap holds for a hundred of them, as
// the C library counts it.
#include "base/bytes.h"
#include "base/clock.h"
#include "base/executor.h"
#include "base/ids.h"
#include "base/uuid.h"
#include "storage/epoch_reader.h"
#include "storage/log_config.h"
#include "storage/log_dir.h"
#include "storage/partition_log.h"
#include "storage/posix_volume.h"
#include "storage/testing_log.h"
#include "storage/testing_session.h"
#include "storage/testing_volume.h"
#include "storage/volume.h"

#include <gtest/gtest.h>

#include <malloc.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace kaas::storage {
namespace {

using testing::Answer;
using testing::make_batch;
using testing::read_values;
using testing::to_append;

// Of the 4 KB of an idle partition, the cluster's image and the table need the rest.
constexpr std::size_t kOpenedBytes = 2'200;
constexpr std::size_t kWrittenBytes = 2'650;
static_assert(sizeof(PartitionLog) <= 1'500, "of each partition, however idle");

/// One life of a broker, as it is by default: with a journal.
struct Broker {
    Broker(Volume& volume, base::Clock& clock)
        : log_dir({.volume = &volume,
                   .session = &session,
                   .io_pool = &executor,
                   .io_width = 1,
                   .clock = &clock,
                   .owner = {.broker = base::BrokerId{1}, .incarnation = {base::Uuid::random()}},
                   .journal = true}) {}
    ~Broker() { log_dir.stop(); }

    void commit_all() {
        while (log_dir.run_cycle()) {
        }
    }

    TestingSession session;
    base::InlineExecutor executor;
    LogDir log_dir;
};

class IdleLogTest : public ::testing::Test {
protected:
    using Logs = std::vector<std::shared_ptr<PartitionLog>>;
    static constexpr std::size_t kLogs = 100;

    Logs open(Broker& broker, std::int32_t epoch) {
        std::vector<PartitionLogOptions> options;
        for (std::size_t i = 0; i < kLogs; ++i) {
            options.push_back({.log_dir = &broker.log_dir,
                               .directory = "topic.AAAAAAAAAAAAAAAAAAAAAA/" + std::to_string(i),
                               .epoch = base::LeaderEpoch{epoch},
                               .earlier = candidates_below(*volume_, epoch, 0, epoch > 0),
                               .config = config_});
        }
        Logs logs;
        for (auto& log : PartitionLog::open_together(std::move(options))) {
            EXPECT_TRUE(log) << log.error().context;
            if (log) logs.push_back(std::move(*log));
        }
        return logs;
    }
    static void append_to_all(Broker& broker, const Logs& logs, const std::string& value) {
        std::vector<Answer> answers(logs.size());
        for (std::size_t i = 0; i < logs.size(); ++i) {
            EXPECT_TRUE(logs[i]->append(to_append(make_batch({.value = value}), Acks::kAll,
                                                  broker.executor, answers[i].receiver())));
        }
        broker.commit_all();
        for (const auto& answer : answers) EXPECT_TRUE(answer.good());
    }
    /// Until each has recorded all that it has.
    void let_rest(Broker& broker) {
        clock_.advance(broker.log_dir.options().checkpoint_after);
        broker.commit_all();
    }
    static void release_all(const Logs& logs) {
        for (const auto& one : PartitionLog::release_together(logs, std::chrono::milliseconds(0)))
            EXPECT_TRUE(one);
    }
    static std::size_t heap() { return ::mallinfo2().uordblks; }
    testing::TemporaryDirectory root_;
    std::unique_ptr<PosixVolume> volume_ = std::move(*PosixVolume::open(root_.path()));
    base::ManualClock clock_;
    const std::shared_ptr<const LogConfig> config_ = std::make_shared<const LogConfig>();
};

TEST_F(IdleLogTest, CostsLittleMemory) {
    if (heap() == 0) GTEST_SKIP() << "a sanitizer's heap does not count";
    {
        Broker first(*volume_, clock_);
        auto logs = open(first, 0);
        append_to_all(first, logs, "a");
        release_all(logs);
    }
    Broker broker(*volume_, clock_);
    const auto empty = heap();
    auto logs = open(broker, 1);
    const auto opened = (heap() - empty) / kLogs;
    append_to_all(broker, logs, "b");
    let_rest(broker);
    const auto written = (heap() - empty) / kLogs;
    RecordProperty("opened_bytes", static_cast<int>(opened));
    RecordProperty("written_bytes", static_cast<int>(written));
    EXPECT_LE(opened, kOpenedBytes);
    EXPECT_LE(written, kWrittenBytes);
    release_all(logs);
}

TEST_F(IdleLogTest, GoesOnAfterItHasRested) {
    Broker broker(*volume_, clock_);
    auto logs = open(broker, 0);
    append_to_all(broker, logs, "a");
    let_rest(broker);
    EXPECT_EQ(read_values(*logs[0]), std::vector<std::string>{"a"}) << "its file is opened again";
    append_to_all(broker, logs, "b");
    EXPECT_EQ(read_values(*logs[0]), (std::vector<std::string>{"a", "b"}));
    EXPECT_EQ(read_values(*logs[1]), (std::vector<std::string>{"a", "b"})) << "by its writer";
    let_rest(broker);
    release_all(logs);

    Broker next(*volume_, clock_);
    logs = open(next, 1);
    EXPECT_EQ(read_values(*logs[2]), (std::vector<std::string>{"a", "b"}));
}

}  // namespace
}  // namespace kaas::storage
