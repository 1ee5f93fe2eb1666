// Goal: appenders, readers, watchers, the commit thread and the I/O pool get along (this runs under
// ThreadSanitizer), every answer is true at the moment it is given, and no wake-up is lost. Method:
// real threads on real files (the volume in memory has one lock, which would put the threads in an
// order that they do not have), small segments and checkpoints so that all paths are taken; each
// appender checks its own answers, readers read to the end and check what they see.

#include "base/thread_pool.h"
#include "storage/posix_volume.h"
#include "storage/testing_log.h"
#include "storage/testing_volume.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <future>
#include <latch>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace kaas::storage {
namespace {

using testing::make_batch;
using testing::read_all;
using testing::to_append;

constexpr int kPartitions = 3;
constexpr int kAppenders = 3;
constexpr int kBatches = 300;
constexpr int kInFlight = 5;
/// Of each partition: a third of its batches has one record, a third two, a third three.
constexpr base::Offset kEnd{kAppenders * kBatches * 2 / kPartitions};

class PartitionLogThreadsTest : public ::testing::Test {
protected:
    void SetUp() override {
        for (int i = 0; i < kPartitions; ++i) {
            auto log = PartitionLog::open(
                {.log_dir = &log_dir_,
                 .directory = "topic.AAAAAAAAAAAAAAAAAAAAAA/" + std::to_string(i),
                 .epoch = base::LeaderEpoch{0},
                 .earlier = {},
                 .config = config_});
            ASSERT_TRUE(log) << log.error().context;
            logs_.push_back(*log);
        }
        for (int i = 0; i <= kAppenders; ++i) {
            reactors_.push_back(std::make_unique<base::ThreadPool>("reactor", 1));
        }
        log_dir_.start();
    }
    void TearDown() override { log_dir_.stop(); }

    /// One producer on a reactor of its own, `kInFlight` batches open, over all partitions in turn.
    void produce(int appender) {
        auto& reactor = *reactors_[static_cast<std::size_t>(appender)];
        std::atomic<int> open = 0;
        for (int i = 0; i < kBatches; ++i) {
            while (open.load() >= kInFlight) std::this_thread::yield();
            ++open;
            auto& log = *logs_[static_cast<std::size_t>((i + appender) % kPartitions)];
            const auto bytes = make_batch({.records = 1 + i % 3, .value = std::to_string(i)});
            const auto acks = i % 4 == 0 ? Acks::kLeader : Acks::kAll;
            auto request = to_append(bytes, acks, reactor, {});
            request.done = [&open, &log, acks](Result<Appended> answer) {
                EXPECT_TRUE(answer) << answer.error().context;
                if (acks == Acks::kAll) EXPECT_GT(log.view().high_watermark, answer->base_offset);
                --open;
            };
            EXPECT_TRUE(log.append(std::move(request)));
        }
        while (open.load() > 0) std::this_thread::yield();
    }

    void consume(PartitionLog& log) {
        auto& reactor = *reactors_.back();
        base::Offset seen{0};
        while (seen < kEnd) {
            const auto view = log.view();
            ASSERT_GE(view.high_watermark, seen);
            const auto bytes = read_all(log, seen, 500);
            ASSERT_TRUE(bytes) << bytes.error().context;
            for (base::ByteView rest(*bytes); !rest.empty();) {
                const auto batch = wire::first_batch(rest);
                ASSERT_TRUE(batch);
                ASSERT_TRUE(wire::check_crc(*batch));
                ASSERT_EQ(batch->header.base_offset, seen.value());
                seen = base::Offset{batch->header.last_offset() + 1};
                rest = rest.subspan(batch->bytes.size());
            }
            if (seen < kEnd) await_more(log, seen, reactor);
        }
    }

    static void await_more(PartitionLog& log, base::Offset seen, base::Executor& reactor) {
        auto more = std::make_shared<std::promise<void>>();
        auto woken = more->get_future();
        const auto left_soon =
            log.watch({.beyond = seen, .min_bytes = 1 << 30, .home = &reactor, .wake = [] {}});
        (void)log.watch({.beyond = seen, .home = &reactor, .wake = [more] { more->set_value(); }});
        log.unwatch(left_soon);
        ASSERT_EQ(woken.wait_for(std::chrono::minutes(1)), std::future_status::ready)
            << "nobody said that there is more than " << seen.value();
    }

    LogConfig config_{.segment_bytes = 4000, .index_interval_bytes = 200};
    testing::TemporaryDirectory directory_;
    const std::unique_ptr<PosixVolume> volume_ =
        *PosixVolume::open(directory_.path(), {.honest_sync = false});
    TestingSession session_;
    std::vector<std::unique_ptr<base::ThreadPool>> reactors_;  ///< they outlive the commit thread
    base::ThreadPool io_pool_{"io", 2};
    LogDir log_dir_{{.volume = volume_.get(),
                     .session = &session_,
                     .io_pool = &io_pool_,
                     .io_width = 2,
                     .clock = &base::Clock::system(),
                     .owner = {.broker = base::BrokerId{1}, .incarnation = {base::Uuid::random()}},
                     .checkpoint_bytes = 1500,
                     .checkpoint_after = std::chrono::milliseconds(1)}};
    std::vector<std::shared_ptr<PartitionLog>> logs_;
    std::atomic<bool> done_ = false;
};

TEST_F(PartitionLogThreadsTest, ManyReactorsAppendAndReadAtOnce) {
    std::vector<std::thread> consumers;
    for (auto& log : logs_) consumers.emplace_back([this, &log] { consume(*log); });
    std::vector<std::thread> appenders;
    for (int i = 0; i < kAppenders; ++i) appenders.emplace_back([this, i] { produce(i); });
    std::thread others([this] {
        while (!done_.load()) {
            for (auto& log : logs_) {
                log->set_config(config_);
                EXPECT_TRUE(log->first_at_or_after(0, Isolation::kReadCommitted));
                EXPECT_TRUE(log->end_of_epoch(base::LeaderEpoch{0}, -1));
            }
            std::this_thread::yield();
        }
    });
    for (auto& thread : appenders) thread.join();
    std::int64_t end = 0;
    for (auto& log : logs_) end += log->view().high_watermark.value();
    EXPECT_EQ(end, std::int64_t{kAppenders} * kBatches * 2);
    done_ = true;
    for (auto& thread : consumers) thread.join();
    others.join();
    for (auto& log : logs_) {
        EXPECT_GT(log->view().sealed->size(), 1);
        EXPECT_TRUE(log->release(std::chrono::seconds(10)));
    }
}

TEST_F(PartitionLogThreadsTest, AReleaseUnderLoadAnswersEveryTicketOnce) {
    auto& reactor = *reactors_[0];
    auto& log = *logs_[0];
    std::atomic<int> accepted = 0;
    std::atomic<int> answered = 0;
    std::latch started(1);
    std::thread appender([&] {
        for (;;) {
            auto request =
                to_append(make_batch({}), Acks::kAll, reactor, [&](auto) { ++answered; });
            if (!log.append(std::move(request))) return;
            if (++accepted == 20) started.count_down();
        }
    });
    started.wait();
    EXPECT_TRUE(log.release(std::chrono::seconds(10)));
    appender.join();
    while (answered.load() < accepted.load()) std::this_thread::yield();
    EXPECT_EQ(answered, accepted);
}

}  // namespace
}  // namespace kaas::storage
