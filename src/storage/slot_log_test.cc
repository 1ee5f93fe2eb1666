// Goal: the log of a coordinator slot keeps order, says "settled" only of what is durable and was
// checked afterwards, hands a taker exactly what was settled, and ends at the first failure.
// Method: single steps of a log dir on a volume in memory that fails and forgets on demand.

#include "storage/slot_log.h"

#include "base/clock.h"
#include "base/executor.h"
#include "base/uuid.h"
#include "storage/memory_volume.h"
#include "storage/testing_slot.h"

#include <boost/json/serialize.hpp>
#include <fmt/format.h>
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

using namespace std::chrono_literals;
using Strings = std::vector<std::string>;

class SlotLogTest : public ::testing::Test {
protected:
    SlotLogTest() {
        testing::make_slots_parent(volume_);
        restart();
    }

    void restart() { life_ = std::make_unique<testing::SlotLife>(volume_, clock_); }

    /// Opens the slot and replays it into `slot_`.
    std::shared_ptr<SlotLog> open(std::int32_t epoch, std::int32_t lowest = 0,
                                  bool lowest_written = false) {
        auto opened = life_->open(17, epoch, lowest, lowest_written);
        EXPECT_TRUE(opened) << opened.error().context;
        if (!opened) return nullptr;
        slot_ = std::move(*opened);
        return slot_.log;
    }
    /// Keeps the answer in `answers_`, which stays empty until there is one.
    void settle(SlotLog& log, const std::string& name = "settled") {
        log.settle(home_, [this, name](const Result<void>& outcome) {
            answers_.push_back(outcome ? name : name + ": " + outcome.error().context);
            last_ = outcome;
        });
    }
    [[nodiscard]] bool settles(SlotLog& log) {
        last_ = fail(ErrorCode::kIo, "no answer");
        settle(log);
        life_->run();
        return last_.has_value();
    }
    [[nodiscard]] std::string text(std::int32_t epoch, int number = 1) {
        auto text = read_whole(
            volume_, fmt::format("__cluster/groups/17/{:08x}/slot-{}.jsonl", epoch, number),
            1 << 20);
        return text ? *text : text.error().context;
    }

    MemoryVolume volume_;
    base::ManualClock clock_;
    base::InlineExecutor home_;
    std::unique_ptr<testing::SlotLife> life_;
    testing::TestingSlot slot_;
    Strings answers_;
    Result<void> last_;
};

TEST_F(SlotLogTest, WhatSettledIsThereAfterAPowerCutAndNothingElse) {
    auto log = open(0);
    slot_.add("a");
    slot_.add("b");
    EXPECT_TRUE(settles(*log));
    slot_.add("c");  // nobody heard of it
    volume_.crash();
    restart();
    log = open(1);
    EXPECT_EQ(slot_.values, (Strings{"a", "b"}));
}

TEST_F(SlotLogTest, ATakerIsToldWhereEachChangeStands) {
    auto log = open(0);
    for (const auto* value : {"a", "b", "c"}) {
        slot_.add(value);
        EXPECT_TRUE(settles(*log));
    }
    EXPECT_TRUE(log->release(0ms));
    restart();
    const auto taken = SlotLog::open(
        testing::slot_options(life_->log_dir, 17, 1, candidates_below(volume_, 1, 0, true)));
    ASSERT_TRUE(taken) << taken.error().context;
    ASSERT_TRUE(taken->inherited);
    EXPECT_EQ(taken->inherited->file, "__cluster/groups/17/00000000/slot-1.jsonl");
    const auto whole = text(0);
    ASSERT_EQ(taken->inherited->offsets.size(), taken->inherited->changes.size());
    for (std::size_t i = 0; i < taken->inherited->changes.size(); ++i) {
        const auto line = whole.substr(taken->inherited->offsets[i]);
        const auto& value = taken->inherited->changes[i].at("add").as_string();
        EXPECT_LT(line.find(std::string(value)), line.find('\n')) << line;
    }
}

TEST_F(SlotLogTest, AnUnwrittenSlotHasNothingToReplayAndWritesNothing) {
    auto log = open(5, 3);
    EXPECT_TRUE(slot_.values.empty());
    EXPECT_FALSE(log->wants_picture());
    EXPECT_TRUE(settles(*log));
    EXPECT_EQ(log->written_epoch(), std::nullopt);
    EXPECT_EQ(*volume_.list("__cluster/groups/17"), (Strings{"00000003", "00000004"})) << "voids";
}

TEST_F(SlotLogTest, ABarrierCostsOneSessionCheckAndNoSync) {
    auto log = open(0);
    slot_.add("a");
    EXPECT_TRUE(settles(*log));
    int syncs = 0;
    volume_.set_hook([&](const MemoryVolume::Step&) {
        ++syncs;
        return std::nullopt;
    });
    const int checks = life_->session.checks;
    EXPECT_TRUE(settles(*log));
    EXPECT_EQ(life_->session.checks, checks + 1);
    EXPECT_EQ(syncs, 0);
}

TEST_F(SlotLogTest, ASettleNeedsACheckThatBeganAfterIt) {
    auto log = open(0);
    slot_.add("a");
    settle(*log, "first");
    auto cycle = life_->log_dir.next_cycle();
    cycle->write();
    cycle->sync();
    cycle->confirm();
    settle(*log, "second");
    life_->session.fenced = true;
    cycle->settle();
    EXPECT_EQ(answers_, Strings{"first"});
    life_->run();
    EXPECT_EQ(answers_, (Strings{"first", "second: marked"}));
    EXPECT_EQ(log->failure()->code, ErrorCode::kFenced);
}

TEST_F(SlotLogTest, SettlesAreAnsweredInOrderAlsoWhenTheFirstPictureComesLate) {
    auto log = open(0);
    settle(*log, "1");
    log->append(R"({"add":"a"})");
    settle(*log, "2");
    life_->run();
    EXPECT_TRUE(answers_.empty()) << "a change without its picture is not durable";
    slot_.values = {"a"};
    log->begin_file(slot_.picture());
    slot_.add("b");
    settle(*log, "3");
    life_->run();
    EXPECT_EQ(answers_, (Strings{"1", "2", "3"}));
    open(1);
    EXPECT_EQ(slot_.values, (Strings{"a", "b"}));
}

TEST_F(SlotLogTest, AFailedSyncEndsTheEpochForAllWhoWait) {
    auto log = open(0);
    slot_.add("a");
    EXPECT_TRUE(settles(*log));
    answers_.clear();
    volume_.fail_nth(Operation::kSync, 1, {});
    slot_.add("b");
    settle(*log);
    auto cycle = life_->log_dir.next_cycle();
    cycle->write();
    settle(*log);
    cycle->sync();
    cycle->confirm();
    cycle->settle();
    settle(*log);
    life_->run();
    EXPECT_EQ(answers_.size(), 3U);
    for (const auto& answer : answers_) EXPECT_NE(answer, "settled");
    EXPECT_TRUE(log->failure());
    EXPECT_FALSE(log->at_work());
    slot_.add("c");
    life_->run();
    EXPECT_EQ(text(0).find("\"c\""), std::string::npos);
}

TEST_F(SlotLogTest, AShortWriteEndsTheEpochAndATakerReadsOn) {
    auto log = open(0);
    slot_.add("a");
    EXPECT_TRUE(settles(*log));
    volume_.fail_nth(Operation::kWrite, 1, {ErrorCode::kNoSpace, Fault::Effect::kHalf});
    slot_.add("b");
    EXPECT_FALSE(settles(*log));
    log = open(1);
    EXPECT_EQ(slot_.values, Strings{"a"});
    EXPECT_TRUE(log->must_write_picture()) << "what was only read does not count yet";
}

TEST_F(SlotLogTest, ALineThatNobodyCouldReadEndsTheEpochAndIsNotWritten) {
    for (const std::string bad : {"{\"add\":\"\xff\"}", "{\"add\":1}\n", "{\"add\":", "[1]",
                                  "{\"log\":{\"synced\":1}}", "{\"crc\":\"00000000\"}"}) {
        auto log = open(0);
        slot_.add("a");
        EXPECT_TRUE(settles(*log));
        const auto before = text(0);
        log->append(bad);
        EXPECT_FALSE(settles(*log)) << bad;
        EXPECT_EQ(last_.error().code, ErrorCode::kUnwritable);
        EXPECT_EQ(text(0), before);
        ASSERT_TRUE(remove_tree(volume_, "__cluster/groups/17"));
    }
}

TEST_F(SlotLogTest, TheChangesOfACycleAreOneWrite) {
    auto log = open(0);
    slot_.add("a");
    EXPECT_TRUE(settles(*log));
    int writes = 0;
    volume_.set_hook([&](const MemoryVolume::Step& step) {
        writes += step.operation == Operation::kWrite ? 1 : 0;
        return std::nullopt;
    });
    for (int i = 0; i < 4; ++i) slot_.add(std::to_string(i));
    EXPECT_TRUE(settles(*log));
    EXPECT_EQ(writes, 1);
}

TEST_F(SlotLogTest, APictureReplacesTheChangesThatItHolds) {
    auto log = open(0);
    for (int i = 0; i < 40; ++i) {
        slot_.add(fmt::format("value {}", i));
        if (i % 3 == 0) EXPECT_TRUE(settles(*log));
    }
    EXPECT_TRUE(settles(*log));
    const auto files = *volume_.list("__cluster/groups/17/00000000");
    EXPECT_EQ(files.size(), 2U) << "the first and the current one";
    EXPECT_NE(files.back(), "slot-2.jsonl");
    const auto all = slot_.values;
    open(1);
    EXPECT_EQ(slot_.values, all);
}

TEST_F(SlotLogTest, AnIdleSlotIsVouchedForAndItsTakerWritesNothing) {
    auto log = open(0);
    slot_.add("a");
    slot_.add("b");
    EXPECT_TRUE(settles(*log));
    clock_.advance(6s);
    life_->run();
    restart();
    log = open(1);
    EXPECT_EQ(slot_.values, (Strings{"a", "b"}));
    EXPECT_FALSE(log->must_write_picture());
    EXPECT_EQ(log->written_epoch(), base::LeaderEpoch{0});
    EXPECT_EQ(*volume_.list("__cluster/groups/17"), Strings{"00000000"});
    slot_.add("c");
    EXPECT_TRUE(settles(*log));
    EXPECT_EQ(log->written_epoch(), base::LeaderEpoch{1});
    restart();
    open(2);
    EXPECT_EQ(slot_.values, (Strings{"a", "b", "c"}));
}

TEST_F(SlotLogTest, WhatIsLeftOfEarlierEpochsGoesOnceThePictureStands) {
    auto log = open(0);
    slot_.add("a");
    EXPECT_TRUE(settles(*log));
    restart();
    log = open(1);
    EXPECT_TRUE(log->must_write_picture());
    slot_.offer_picture();
    EXPECT_TRUE(settles(*log));
    EXPECT_EQ(*volume_.list("__cluster/groups/17"), (Strings{"00000000", "00000001"}));
    clock_.advance(6s);
    life_->run();
    EXPECT_EQ(*volume_.list("__cluster/groups/17"), Strings{"00000001"});
    open(2);
    EXPECT_EQ(slot_.values, Strings{"a"});
}

TEST_F(SlotLogTest, AnOwnerWhoseEpochWasClosedLearnsIt) {
    open(1);
    auto late = slot_;
    open(2, 0);
    late.add("a");
    EXPECT_FALSE(settles(*late.log));
    EXPECT_EQ(late.log->failure()->code, ErrorCode::kExists);
}

TEST_F(SlotLogTest, ASupersededTakerIsToldSo) {
    const auto opened = life_->open(17, 2, 1, true);
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, ErrorCode::kNotFound);
}

TEST_F(SlotLogTest, ATakerWhoseSessionIsOverGetsNothing) {
    life_->session.fenced = true;
    const auto opened = life_->open(17, 0);
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, ErrorCode::kFenced);
}

/// Nothing that it answers would pass a check. But a coordinator goes on where its predecessor
/// stood before anybody asks: it arms timers, sends markers.
TEST_F(SlotLogTest, ATakerWhoseSessionEndsWhileItReadsGetsNothing) {
    auto log = open(0);
    slot_.add("a");
    EXPECT_TRUE(settles(*log));
    restart();
    volume_.set_hook([&](const MemoryVolume::Step&) {
        life_->session.fenced = true;
        return std::nullopt;
    });
    const auto opened = life_->open(17, 1);
    volume_.set_hook({});
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, ErrorCode::kFenced);
}

TEST_F(SlotLogTest, AReleasedSlotIsTakenOverWithoutAWrite) {
    auto log = open(0);
    slot_.add("a");
    EXPECT_TRUE(settles(*log));
    EXPECT_TRUE(log->release(0ms));
    settle(*log);
    EXPECT_EQ(answers_.back(), "settled: __cluster/groups/17 was released");
    volume_.crash();
    restart();
    log = open(1);
    EXPECT_EQ(slot_.values, Strings{"a"});
    EXPECT_FALSE(log->must_write_picture());
}

TEST_F(SlotLogTest, AReleaseFailsWhatItDoesNotWaitFor) {
    auto log = open(0);
    slot_.add("a");
    settle(*log);
    EXPECT_EQ(log->release(0ms).error().code, ErrorCode::kStalled);
    EXPECT_EQ(answers_, Strings{"settled: __cluster/groups/17 was released"});
    life_->run();
    EXPECT_EQ(answers_.size(), 1U);
    EXPECT_FALSE(log->at_work());
}

TEST_F(SlotLogTest, AStallEndsALogThatSomebodyWaitsFor) {
    auto log = open(0);
    slot_.add("a");
    ASSERT_TRUE(settles(*log));
    log->fail_stalled();
    EXPECT_EQ(log->failure(), std::nullopt) << "nobody has noticed";
    slot_.add("b");
    settle(*log);
    log->fail_stalled();
    EXPECT_EQ(last_.error().code, ErrorCode::kStalled);
    ASSERT_TRUE(log->failure());
    EXPECT_EQ(log->failure()->code, ErrorCode::kStalled);
    life_->run();
    EXPECT_EQ(answers_.size(), 2U);
    EXPECT_FALSE(settles(*log));
    EXPECT_FALSE(log->at_work());
}

TEST_F(SlotLogTest, ManySlotsBeginAndEndTogetherForAFewSyncs) {
    std::vector<testing::TestingSlot> slots;
    for (std::int32_t i = 0; i < 50; ++i) {
        auto opened = life_->open(i, 0);
        ASSERT_TRUE(opened);
        slots.push_back(std::move(*opened));
        slots.back().add("a");
        settle(*slots.back().log);
    }
    int syncs = 0;
    volume_.set_hook([&](const MemoryVolume::Step& step) {
        syncs += step.operation == Operation::kSync ||
                         step.operation == Operation::kSyncDirectory ||
                         step.operation == Operation::kSyncAll
                     ? 1
                     : 0;
        return std::nullopt;
    });
    life_->run();
    EXPECT_EQ(answers_, Strings(50, "settled"));
    EXPECT_EQ(syncs, 2);
    std::vector<std::shared_ptr<SlotLog>> logs;
    for (auto& slot : slots) logs.push_back(slot.log);
    for (const auto& released : SlotLog::release_together(logs, 0ms)) EXPECT_TRUE(released);
    EXPECT_EQ(syncs, 4);
    volume_.set_hook({});
    volume_.crash();
    restart();
    for (std::int32_t i = 0; i < 50; ++i) {
        const auto opened = life_->open(i, 1);
        ASSERT_TRUE(opened);
        EXPECT_EQ(opened->values, Strings{"a"});
        EXPECT_FALSE(opened->log->must_write_picture());
    }
}

}  // namespace
}  // namespace kaas::storage
