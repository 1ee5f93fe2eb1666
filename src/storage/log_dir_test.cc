// Goal: a log dir gathers what is dirty into cycles, one at a time, syncs side by side, reminds on
// time, and says when a cycle stalls. Method: members that count what is asked of them; the
// threaded parts wait for events, never for time.

#include "storage/log_dir.h"

#include "base/mutex.h"
#include "base/thread_pool.h"
#include "storage/memory_volume.h"
#include "storage/testing_session.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <functional>
#include <latch>
#include <memory>
#include <string>
#include <vector>

namespace kaas::storage {
namespace {

using namespace std::chrono_literals;

class CountingMember final : public CommitMember,
                             public std::enable_shared_from_this<CountingMember> {
public:
    void checkpoint_due() override { ++due; }
    Pace take() override {
        calls += "take ";
        return pace;
    }
    void write() override { calls += "write "; }
    File* to_sync() override { return file; }
    void synced(const Result<void>& outcome) override {
        calls += outcome ? "synced " : "sync failed ";
    }
    [[nodiscard]] bool awaits_write() const override { return waits; }
    void answer_written(const Result<void>&, Wakeups&) override { calls += "written "; }
    void settle(const Result<void>& check, Wakeups&) override {
        calls += check ? "settled " : "check failed ";
        if (on_settle) on_settle();
    }

    std::string calls;
    Pace pace = Pace::kQuick;
    File* file = nullptr;
    bool waits = false;
    int due = 0;
    std::function<void()> on_settle;
};

class LogDirTest : public ::testing::Test {
protected:
    [[nodiscard]] LogDirOptions options() {
        return {.volume = &volume_,
                .session = &session_,
                .io_pool = &inline_,
                .clock = &clock_,
                .owner = {.broker = base::BrokerId{1}, .incarnation = {base::Uuid::random()}},
                .stall_after = 1000ms};
    }

    MemoryVolume volume_;
    TestingSession session_;
    base::InlineExecutor inline_;
    base::ManualClock clock_;
};

TEST_F(LogDirTest, ACycleWritesSyncsChecksAndSettlesInThatOrder) {
    LogDir log_dir(options());
    EXPECT_FALSE(log_dir.run_cycle());
    auto file = *volume_.create("file");
    auto member = std::make_shared<CountingMember>();
    member->file = file.get();
    log_dir.enqueue(member);
    EXPECT_TRUE(log_dir.run_cycle());
    EXPECT_EQ(member->calls, "take write synced settled ");
    EXPECT_EQ(session_.checks, 1);
    EXPECT_FALSE(log_dir.run_cycle());
}

TEST_F(LogDirTest, OneCheckServesAllMembersOfACycle) {
    LogDir log_dir(options());
    for (int i = 0; i < 50; ++i) log_dir.enqueue(std::make_shared<CountingMember>());
    EXPECT_TRUE(log_dir.run_cycle());
    EXPECT_EQ(session_.checks, 1);
}

TEST_F(LogDirTest, AFailedSyncConcernsItsMemberAlone) {
    LogDir log_dir(options());
    auto bad_file = *volume_.create("bad");
    auto good_file = *volume_.create("good");
    auto bad = std::make_shared<CountingMember>();
    auto good = std::make_shared<CountingMember>();
    bad->file = bad_file.get();
    good->file = good_file.get();
    volume_.fail_nth(Operation::kSync, 1, {});
    log_dir.enqueue(bad);
    log_dir.enqueue(good);
    EXPECT_TRUE(log_dir.run_cycle());
    EXPECT_EQ(bad->calls, "take write sync failed settled ");
    EXPECT_EQ(good->calls, "take write synced settled ");
}

TEST_F(LogDirTest, WaitersForTheWriteGetACheckOfTheirOwn) {
    LogDir log_dir(options());
    auto waiting = std::make_shared<CountingMember>();
    waiting->waits = true;
    log_dir.enqueue(waiting);
    session_.fenced = true;
    EXPECT_TRUE(log_dir.run_cycle());
    EXPECT_EQ(waiting->calls, "take write written check failed ");
    EXPECT_EQ(session_.checks, 2);
}

TEST_F(LogDirTest, RemindersComeInTheirTimeAndOnce) {
    LogDir log_dir(options());
    auto member = std::make_shared<CountingMember>();
    log_dir.remind(member);
    clock_.advance(4999ms);
    EXPECT_FALSE(log_dir.run_cycle());
    EXPECT_EQ(member->due, 0);
    clock_.advance(1ms);
    EXPECT_FALSE(log_dir.run_cycle());
    EXPECT_EQ(member->due, 1);
    clock_.advance(1h);
    EXPECT_FALSE(log_dir.run_cycle());
    EXPECT_EQ(member->due, 1);
}

TEST_F(LogDirTest, ACycleThatDoesNotEndIsAStallAndAnIdleDirectoryIsNone) {
    LogDir log_dir(options());
    clock_.advance(1h);
    EXPECT_FALSE(log_dir.stalled());
    std::latch running(1);
    std::latch answer(1);
    auto member = std::make_shared<CountingMember>();
    member->on_settle = [&] {
        running.count_down();
        answer.wait();
    };
    log_dir.start();
    log_dir.enqueue(member);
    running.wait();
    clock_.advance(1000ms);
    EXPECT_FALSE(log_dir.stalled());
    clock_.advance(1ms);
    EXPECT_TRUE(log_dir.stalled());
    answer.count_down();
    log_dir.stop();
    EXPECT_FALSE(log_dir.stalled());
}

TEST_F(LogDirTest, WhatIsQueuedWhenItStopsIsStillCommitted) {
    LogDir log_dir(options());
    std::vector<std::shared_ptr<CountingMember>> members;
    for (int i = 0; i < 100; ++i) members.push_back(std::make_shared<CountingMember>());
    log_dir.start();
    for (auto& member : members) log_dir.enqueue(member);
    log_dir.stop();
    for (auto& member : members) EXPECT_EQ(member->calls, "take write settled ");
}

TEST_F(LogDirTest, AMemberMayComeBackWhileItsCycleEnds) {
    LogDir log_dir(options());
    std::latch done(1000);
    auto member = std::make_shared<CountingMember>();
    std::atomic<int> left = 1000;
    member->on_settle = [&] {
        if (--left > 0) log_dir.enqueue(member);
        done.count_down();
    };
    log_dir.start();
    log_dir.enqueue(member);
    done.wait();
    log_dir.stop();
}

TEST(RunSideBySideTest, DoesEveryJobOnceAndUsesTheHelpers) {
    base::ThreadPool pool("io", 3);
    for (const std::size_t count : {0U, 1U, 2U, 3U, 100U}) {
        std::vector<std::atomic<int>> done(count);
        run_side_by_side(&pool, 3, count, [&](std::size_t i) { ++done[i]; });
        for (auto& times : done) EXPECT_EQ(times, 1);
    }
    // Four at a time: the caller and three helpers. Fewer would never meet.
    std::latch together(4);
    run_side_by_side(&pool, 3, 4, [&](std::size_t) { together.arrive_and_wait(); });
}

TEST(WakeupsTest, EachHomeIsPostedToOnceInOrder) {
    class Home final : public base::Executor {
    public:
        void post(Work work) override {
            ++posts;
            work();
        }
        int posts = 0;
    };
    Home a;
    Home b;
    std::string order;
    Wakeups wakeups;
    wakeups.add(&a, [&] { order += "1"; });
    wakeups.add(&b, [&] { order += "x"; });
    wakeups.add(&a, [&] { order += "2"; });
    EXPECT_EQ(order, "");
    wakeups.post();
    EXPECT_EQ(order, "12x");
    EXPECT_EQ(a.posts, 1);
    EXPECT_EQ(b.posts, 1);
    wakeups.post();
    EXPECT_EQ(a.posts, 1);
}

}  // namespace
}  // namespace kaas::storage
