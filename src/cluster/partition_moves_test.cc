// Goal: a partition moves from one volume to another without a lost or doubled record, whatever
// fails on the way, and leaves nothing behind. Method: real nodes on two volumes in memory, with
// faults and deaths at each step of one of them.

#include "base/ids.h"
#include "cluster/log_dirs_fixture.h"
#include "cluster/node.h"
#include "cluster/partition_table.h"
#include "storage/journal.h"
#include "storage/log_dir.h"
#include "storage/memory_volume.h"
#include "storage/partition_log.h"
#include "storage/testing_compaction.h"
#include "storage/testing_log.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace kaas::cluster {
namespace {

using storage::Fault;
using storage::MemoryVolume;
using storage::Operation;
using Move = PartitionTable::Move;
class PartitionMovesTest : public LogDirsTest {};

TEST_F(PartitionMovesTest, PartitionMovesWithAllItsRecordsAndLeavesNothing) {
    start();
    create();
    for (int i = 0; i < 30; ++i) ASSERT_TRUE(append(0, std::string(100, 'a')));
    const auto before = content(0);
    const auto epoch = partition(0).leader_epoch;
    ASSERT_EQ(node_->partitions().move(id(0), "b"), Move::kBegun);
    await_moved("b");
    EXPECT_EQ(partition(0).leader_epoch, epoch + 1);
    EXPECT_EQ(content(0), before);
    await([&] { return !a_->list(directory()); });
    EXPECT_FALSE(a_->list("orders." + id(0).topic.uuid.to_string())) << "the topic has no other";
    await([&] {
        return node_->partitions().image()->topic("orders")->partitions[0].runs.size() == 1;
    });
    ASSERT_TRUE(append(0, "after"));
    const auto stored = node_->partitions().stored();
    for (const auto& one : stored) {
        EXPECT_EQ(one.volume, "b");
        EXPECT_FALSE(one.is_future);
    }

    // And back, and over a crash: the old volume may go.
    const auto more = content(0);
    ASSERT_EQ(node_->partitions().move(id(0), "a"), Move::kBegun);
    await_moved("a");
    EXPECT_EQ(content(0), more);
    crash(7);
    start();
    await([&] { return node_->partitions().opening() == 0; });
    EXPECT_EQ(content(0), more);
}

TEST_F(PartitionMovesTest, RecordsThatComeDuringAMoveAreThereOnceInOrder) {
    start();
    create();
    for (int i = 0; i < 10; ++i) ASSERT_TRUE(append(0, std::string(100, 'a')));
    std::int64_t acknowledged = 10;
    for (int round = 0; round < 6; ++round) {
        const std::string to = round % 2 == 0 ? "b" : "a";
        ASSERT_EQ(node_->partitions().move(id(0), to), Move::kBegun);
        while (partition(0).volume() != to || find(0).state != Hosting::kServing) {
            if (append(0, std::string(100, 'm'))) ++acknowledged;
        }
        auto found = find(0);
        EXPECT_EQ(found.log->latest(storage::Isolation::kReadUncommitted)->offset,
                  base::Offset(acknowledged));
        (void)content(0);
    }
}

TEST_F(PartitionMovesTest, WhatComesAfterTheLastLookOfACopyIsBroughtOver) {
    start();
    create();
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(append(0, std::string(100, 'a')));
    int late = 0;
    b_->set_hook([&](const MemoryVolume::Step& step) -> std::optional<Fault> {
        if (step.operation == Operation::kRename && step.path.ends_with(".moving") && late == 0) {
            for (; late < 3; ++late) EXPECT_TRUE(append(0, std::string(100, 'z')));
        }
        return std::nullopt;
    });
    ASSERT_EQ(node_->partitions().move(id(0), "b"), Move::kBegun);
    await_moved("b");
    b_->set_hook(nullptr);
    EXPECT_EQ(late, 3);
    EXPECT_EQ(find(0).log->latest(storage::Isolation::kReadUncommitted)->offset, base::Offset(6));
    EXPECT_GT(content(0).size(), 600U);
}

TEST_F(PartitionMovesTest, DeathAtAnyStepOfAMoveLosesNothing) {
    for (std::uint64_t at = 0;; at += 3) {  // every step would take half a minute
        a_ = std::make_unique<MemoryVolume>("/a");
        b_ = std::make_unique<MemoryVolume>("/b");
        start();
        create();
        for (int i = 0; i < 12; ++i) ASSERT_TRUE(append(0, std::string(100, 'a')));
        const auto before = content(0);
        auto& dying = at % 2 == 0 ? *a_ : *b_;
        const auto limit = dying.steps() + at / 2;
        dying.halt_at(limit);
        (void)node_->partitions().move(id(0), "b");
        await([&] {
            return dying.steps() >= limit ||
                   (partition(0).runs.size() == 1 && partition(0).volume() == "b");
        });
        const bool whole = dying.steps() < limit;
        crash(at);
        start();
        await([&] { return node_->partitions().opening() == 0; });
        ASSERT_EQ(find(0).state, Hosting::kServing) << "step " << at;
        EXPECT_EQ(content(0), before) << "step " << at;
        ASSERT_TRUE(append(0, "on"));
        // What the dead move has left is whole, or is copied again.
        const auto more = content(0);
        const std::string other = partition(0).volume() == "a" ? "b" : "a";
        ASSERT_EQ(node_->partitions().move(id(0), other), Move::kBegun);
        await_moved(other);
        EXPECT_EQ(content(0), more) << "step " << at;
        node_.reset();
        if (whole && at % 2 == 1) return;
    }
}

TEST_F(PartitionMovesTest, MoveThatCannotWriteLeavesThePartitionWhereItIs) {
    start();
    create();
    for (int i = 0; i < 12; ++i) ASSERT_TRUE(append(0, std::string(100, 'a')));
    b_->set_hook([](const MemoryVolume::Step& step) -> std::optional<Fault> {
        if (step.operation != Operation::kWrite) return std::nullopt;
        return Fault{storage::ErrorCode::kNoSpace, Fault::Effect::kHalf};
    });
    ASSERT_EQ(node_->partitions().move(id(0), "b"), Move::kBegun);
    await([&] { return !is_moving(); });
    EXPECT_EQ(partition(0).volume(), "a");
    EXPECT_TRUE(append(0, "still served"));
    b_->set_hook(nullptr);
    ASSERT_EQ(node_->partitions().move(id(0), "b"), Move::kBegun);
    await_moved("b");
    EXPECT_EQ(find(0).log->latest(storage::Isolation::kReadUncommitted)->offset, base::Offset(13));
}

// ---- beside what else happens to a log --------------------------------------------------------

TEST_F(PartitionMovesTest, CompactionThatEndsDuringAMoveLeavesNoRecordTwiceAndNoFile) {
    config_.compacted = true;
    config_.file_delete_delay_ms = 0;
    start();
    create();
    for (int i = 0; i < 30; ++i) ASSERT_TRUE(append(0, std::to_string(i) + std::string(100, 'a')));
    std::vector<std::byte> compacted;
    during_a_move([&] {
        const auto log = find(0).log;
        ASSERT_TRUE(append(0, std::string(900, 'z')));  // rolls
        storage::testing::TestCleaner cleaner(log->log_dir().clock());
        ASSERT_TRUE(cleaner.run(*log));
        EXPECT_GT(cleaner.counts.records_in, cleaner.counts.records_kept);
        compacted = content(0);
    });
    EXPECT_LT(compacted.size(), 3'000U) << "all records have one key";
    EXPECT_EQ(content(0), compacted);
    expect_only_named_files("b");
}

TEST_F(PartitionMovesTest, CompactionThatStillRunsWhenTheMoveIsDoneDoesNoHarm) {
    config_.compacted = true;
    start();
    create();
    for (int i = 0; i < 30; ++i) ASSERT_TRUE(append(0, std::string(100, 'a')));
    const auto log = find(0).log;
    std::promise<void> writes;
    std::promise<void> may_go_on;
    std::atomic<bool> held = false;
    a_->set_hook([&](const MemoryVolume::Step& step) -> std::optional<Fault> {
        if (step.operation == Operation::kSync &&
            step.path.find("/00000000/c") != std::string::npos && !held.exchange(true)) {
            writes.set_value();
            may_go_on.get_future().wait();
        }
        return std::nullopt;
    });
    std::thread compaction([&] {
        storage::testing::TestCleaner cleaner(log->log_dir().clock());
        EXPECT_FALSE(cleaner.run(*log)) << "its log has ended";
    });
    writes.get_future().wait();
    const auto before = content(0);
    ASSERT_EQ(node_->partitions().move(id(0), "b"), Move::kBegun);
    await_moved("b");
    EXPECT_EQ(content(0), before);
    EXPECT_TRUE(append(0, "after"));
    node_->partitions().tick();
    EXPECT_TRUE(a_->list(directory())) << "not under its feet";
    may_go_on.set_value();
    compaction.join();
    a_->set_hook(nullptr);
    EXPECT_TRUE(comes_by_ticks([&] { return !a_->list(directory()); }));
}

TEST_F(PartitionMovesTest, RecordsThatAreDeletedDuringAMoveDoNotComeBack) {
    config_.file_delete_delay_ms = 500;  // longer than the move, which goes on beside the files
    start();
    create();
    for (int i = 0; i < 30; ++i) ASSERT_TRUE(append(0, std::string(100, 'a')));
    during_a_move([&] { delete_records(25); });
    EXPECT_EQ(find(0).log->earliest()->offset, base::Offset(25));
    EXPECT_EQ(find(0).log->latest(storage::Isolation::kReadUncommitted)->offset, base::Offset(30));
    expect_only_named_files("b");
}

TEST_F(PartitionMovesTest, SegmentsWhoseFilesGoDuringAMoveDoNotHoldItUp) {
    config_.file_delete_delay_ms = 0;
    start();
    create();
    for (int i = 0; i < 30; ++i) ASSERT_TRUE(append(0, std::string(100, 'a')));
    during_a_move([&] {
        delete_records(25);
        find(0).log->reclaim();
    });
    EXPECT_EQ(find(0).log->earliest()->offset, base::Offset(25));
    expect_only_named_files("b");
}

TEST_F(PartitionMovesTest, TopicThatIsDeletedDuringAMoveLeavesNothing) {
    start();
    create();
    for (int i = 0; i < 30; ++i) ASSERT_TRUE(append(0, std::string(100, 'a')));
    const auto topic = id(0).topic;
    const auto folder = "orders." + topic.uuid.to_string();
    std::atomic<bool> asked = false;
    b_->set_hook([&](const MemoryVolume::Step& step) -> std::optional<Fault> {
        if (step.operation != Operation::kRename || !step.path.ends_with(".moving")) return {};
        if (asked.exchange(true)) return {};
        node_->controller().delete_topics({.topics = {topic}}, {&here_, [](const auto&) {}});
        return {};
    });
    ASSERT_EQ(node_->partitions().move(id(0), "b"), Move::kBegun);
    ASSERT_TRUE(comes_by_ticks([&] { return is_gone(topic); }));
    for (auto* volume : {a_.get(), b_.get()}) EXPECT_FALSE(volume->list(folder)) << volume->root();
}

TEST_F(PartitionMovesTest, OldVolumeThatCannotBeClearedIsTriedAgain) {
    start();
    create();
    for (int i = 0; i < 12; ++i) ASSERT_TRUE(append(0, std::string(100, 'a')));
    a_->set_hook(fail_unlink);
    ASSERT_EQ(node_->partitions().move(id(0), "b"), Move::kBegun);
    await_moved("b");
    EXPECT_TRUE(append(0, "after"));
    EXPECT_TRUE(a_->list(directory()));
    a_->set_hook(nullptr);
    EXPECT_TRUE(comes_by_ticks([&] { return !a_->list(directory()); }));
}

TEST_F(PartitionMovesTest, MoveIsNotForgottenByATickWhileTheOldLogCloses) {
    c_ = std::make_unique<MemoryVolume>("/c");
    start();
    create();
    ASSERT_TRUE(append(0, "x"));
    a_->set_hook(fail_unlink);  // each tick has something to remove
    ASSERT_EQ(node_->partitions().move(id(0), "b"), Move::kBegun);
    await_moved("b");
    std::promise<void> closes;
    std::promise<void> may_go_on;
    std::atomic<bool> held = false;
    b_->set_hook([&](const MemoryVolume::Step& step) -> std::optional<Fault> {
        const bool writes = step.operation == Operation::kWrite && step.path.starts_with("orders.");
        if (writes && find(0).state == Hosting::kNotHere && !held.exchange(true)) {
            closes.set_value();
            may_go_on.get_future().wait();
        }
        return std::nullopt;
    });
    ASSERT_EQ(node_->partitions().move(id(0), "c"), Move::kBegun);
    closes.get_future().wait();
    node_->partitions().tick();
    std::promise<void> done;  // behind what the tick has given to the pool's other thread
    pool_.post([&] { done.set_value(); });
    done.get_future().wait();
    EXPECT_TRUE(is_moving());
    may_go_on.set_value();
    EXPECT_TRUE(comes([&] { return partition(0).volume() == "c"; }));
    b_->set_hook(nullptr);
}

TEST_F(PartitionMovesTest, MoveThatIsTakenBackAtTheLastMomentLeavesNothing) {
    start();
    create();
    b_->set_hook([&](const MemoryVolume::Step& step) -> std::optional<Fault> {
        if (step.operation == Operation::kSyncDirectory && b_->list(directory()))
            EXPECT_EQ(node_->partitions().move(id(0), "a"), Move::kBegun);
        return std::nullopt;
    });
    ASSERT_EQ(node_->partitions().move(id(0), "b"), Move::kBegun);
    EXPECT_TRUE(comes([&] { return !is_moving() && !b_->list(directory()); }));
    b_->set_hook(nullptr);
}

TEST_F(PartitionMovesTest, JournalOfTheOldVolumeNeedsNothingOfALogThatLeftWithoutALastLine) {
    logs_.journal = true;
    logs_.journal_file_bytes = 1'000;
    config_.segment_bytes = 1 << 20;  // nothing is recorded before the move
    start();
    create();
    auto* journal = find(0).log->log_dir().journal();
    await([&] { return append(0, std::string(100, 'a')) && journal->files() > 2; });
    a_->set_hook([&](const MemoryVolume::Step& step) -> std::optional<Fault> {
        const bool writes = step.operation == Operation::kWrite && step.path.starts_with("orders.");
        if (!writes || find(0).state == Hosting::kServing) return std::nullopt;
        return Fault{storage::ErrorCode::kIo, Fault::Effect::kNone};
    });
    ASSERT_EQ(node_->partitions().move(id(0), "b"), Move::kBegun);
    await_moved("b");
    a_->set_hook(nullptr);
    EXPECT_TRUE(comes([&] { return journal->files() == 1; })) << "which takes more";
}

TEST_F(PartitionMovesTest, NeverWrittenSiblingOfWhatMovesCanBeWritten) {
    start();
    create(4);
    ASSERT_TRUE(append(0, "x"));
    ASSERT_EQ(partition(2).volume(), "a");
    ASSERT_EQ(node_->partitions().move(id(0), "b"), Move::kBegun);
    await_moved("b");
    await([&] { return !a_->list(directory()); });
    EXPECT_TRUE(append(2, "first"));
}

TEST_F(PartitionMovesTest, DeletedTopicTakesAlongWhatAnEarlierLifeCouldNotRemove) {
    start();
    create();
    ASSERT_TRUE(append(0, "x"));
    const auto topic = id(0).topic;
    a_->set_hook(fail_unlink);
    ASSERT_EQ(node_->partitions().move(id(0), "b"), Move::kBegun);
    await_moved("b");
    await([&] { return partition(0).runs.size() == 1; });
    node_.reset();
    a_->set_hook(nullptr);
    start();
    await([&] { return find(0).state == Hosting::kServing; });
    ASSERT_TRUE(a_->list(directory()));
    node_->controller().delete_topics({.topics = {topic}}, {&here_, [](const auto&) {}});
    ASSERT_TRUE(comes_by_ticks([&] { return is_gone(topic); }));
    EXPECT_FALSE(a_->list("orders." + topic.uuid.to_string()));
}

TEST_F(PartitionMovesTest, NeverWrittenPartitionMovesToo) {
    start();
    create();
    ASSERT_EQ(node_->partitions().move(id(0), "b"), Move::kBegun);
    await_moved("b");
    EXPECT_TRUE(append(0, "first"));
    EXPECT_EQ(node_->partitions().move(id(0), "b"), Move::kBegun) << "it is there already";
    EXPECT_EQ(node_->partitions().move({id(0).topic, base::PartitionId(9)}, "b"), Move::kNotHere);
}

}  // namespace
}  // namespace kaas::cluster
