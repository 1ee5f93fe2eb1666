// Goal: a check proves life at a moment after it was asked for; a mark is seen by the next check
// and for ever; a failed look proves nothing. Method: a held directory whose looks a test lets go
// one by one, and real sessions on a volume in memory.

#include "cluster/session.h"

#include "base/ids.h"
#include "base/mutex.h"
#include "base/uuid.h"
#include "storage/error.h"
#include "storage/memory_volume.h"
#include "storage/volume.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace kaas::cluster {
namespace {

using storage::Liveness;
using storage::MemoryVolume;

/// Looks wait until the test answers them.
class Gate final : public storage::DirectoryHandle {
public:
    storage::Result<Liveness> look() override {
        base::MutexLock lock(mutex_);
        const auto mine = ++begun_;
        changed_.notify_all();
        while (answers_.size() < mine) changed_.wait(mutex_);
        return answers_[mine - 1];
    }
    storage::Result<void> beat(std::int64_t) override { return {}; }
    storage::Result<std::int64_t> last_beat() override { return 0; }

    void answer(storage::Result<Liveness> result) {
        base::MutexLock lock(mutex_);
        answers_.push_back(std::move(result));
        changed_.notify_all();
    }
    void await_look(std::size_t number) {
        base::MutexLock lock(mutex_);
        while (begun_ < number) changed_.wait(mutex_);
    }
    std::size_t begun() {
        base::MutexLock lock(mutex_);
        return begun_;
    }

private:
    base::Mutex mutex_;
    base::CondVar changed_;
    std::size_t begun_ KAAS_GUARDED_BY(mutex_) = 0;
    std::vector<storage::Result<Liveness>> answers_ KAAS_GUARDED_BY(mutex_);
};

class SharedCheckTest : public ::testing::Test {
protected:
    std::future<storage::Result<void>> confirm() {
        return std::async(std::launch::async, [this] { return check_.confirm(); });
    }
    static std::unexpected<storage::Error> io() {
        return storage::fail(storage::ErrorCode::kIo, "no answer");
    }

    Gate* gate_ = new Gate;
    SharedCheck check_{std::unique_ptr<storage::DirectoryHandle>(gate_), "session"};
};

TEST_F(SharedCheckTest, LateCallersShareTheNextLookNeverTheRunningOne) {
    auto first = confirm();
    gate_->await_look(1);
    // These arrive while the first look runs. It may have looked before their fsync ended.
    std::vector<std::future<storage::Result<void>>> late;
    for (int i = 0; i < 8; ++i) late.push_back(confirm());
    gate_->answer(Liveness::kAlive);
    EXPECT_TRUE(first.get());
    // The first look's answer is not theirs: a second one begins, and they all wait for it.
    gate_->await_look(2);
    gate_->answer(Liveness::kMarked);
    std::size_t fenced = 0;
    for (auto& one : late) fenced += one.get() ? 0 : 1;
    EXPECT_EQ(fenced, 8U);
    EXPECT_EQ(gate_->begun(), 2U);
}

TEST_F(SharedCheckTest, FailedLookProvesNeitherLifeNorDeath) {
    gate_->answer(io());
    auto failed = check_.confirm();
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().code, storage::ErrorCode::kIo);
    EXPECT_FALSE(check_.fenced());
    gate_->answer(Liveness::kAlive);
    EXPECT_TRUE(check_.confirm());
}

TEST_F(SharedCheckTest, ErrorThatClaimsToBeAFenceIsNone) {
    gate_->answer(storage::fail(storage::ErrorCode::kFenced, "a volume that judges"));
    auto failed = check_.confirm();
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().code, storage::ErrorCode::kIo);
    EXPECT_FALSE(check_.fenced());
}

TEST_F(SharedCheckTest, FencedIsForEver) {
    gate_->answer(Liveness::kMarked);
    EXPECT_FALSE(check_.confirm());
    EXPECT_TRUE(check_.fenced());
    auto again = check_.confirm();  // asks nobody any more: no answer is left to give
    ASSERT_FALSE(again);
    EXPECT_EQ(again.error().code, storage::ErrorCode::kFenced);
    EXPECT_EQ(gate_->begun(), 1U);
}

class SessionTest : public ::testing::Test {
protected:
    SessionTest() {
        EXPECT_TRUE(volume_.make_directory(std::string(kSessionsDirectory)));
        EXPECT_TRUE(volume_.sync_directory(""));
    }
    std::unique_ptr<Session> open() {
        auto session = Session::open(volume_, base::BrokerId(3));
        EXPECT_TRUE(session);
        return std::move(*session);
    }

    MemoryVolume volume_;
};

TEST_F(SessionTest, MarkIsSeenByTheNextCheck) {
    auto session = open();
    auto other = open();
    EXPECT_TRUE(session->confirm());
    ASSERT_TRUE(mark_session(volume_, session->broker(), session->incarnation()));
    auto fenced = session->confirm();
    ASSERT_FALSE(fenced);
    EXPECT_EQ(fenced.error().code, storage::ErrorCode::kFenced);
    EXPECT_TRUE(other->confirm()) << "another incarnation of the same broker is not meant";
}

TEST_F(SessionTest, MarkOfOneThatLooksAbsentStopsItFromEverBeing) {
    const base::Incarnation unseen{base::Uuid::random()};
    EXPECT_TRUE(mark_session(volume_, base::BrokerId(3), unseen));
    EXPECT_TRUE(mark_session(volume_, base::BrokerId(3), unseen)) << "a mark may be repeated";
}

TEST_F(SessionTest, SessionSurvivesACrashOfTheVolume) {
    auto session = open();
    const auto path = session_path(session->broker(), session->incarnation());
    volume_.crash();
    EXPECT_TRUE(volume_.hold(path)) << "it was durable before anybody heard of it";
}

TEST_F(SessionTest, MarkThatFailsHalfwayIsNoMark) {
    auto session = open();
    volume_.fail_nth(storage::Operation::kMark, 1, {});
    EXPECT_FALSE(mark_session(volume_, session->broker(), session->incarnation()));
    EXPECT_TRUE(mark_session(volume_, session->broker(), session->incarnation()));
    EXPECT_FALSE(session->confirm());
}

TEST_F(SessionTest, LookThatTheVolumeRefusesDoesNotFence) {
    auto session = open();
    volume_.fail_nth(storage::Operation::kLook, 1, {});
    auto failed = session->confirm();
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().code, storage::ErrorCode::kIo);
    EXPECT_TRUE(session->confirm());
}

}  // namespace
}  // namespace kaas::cluster
