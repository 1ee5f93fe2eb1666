// Goal: with several volumes, one that fails takes only its own partitions along, and a partition
// moves from one to the other without a lost or doubled record, whatever fails on the way. Method:
// real nodes on two volumes in memory, with faults and deaths at each step of one of them.

#include "base/bytes.h"
#include "base/clock.h"
#include "base/executor.h"
#include "base/ids.h"
#include "base/thread_pool.h"
#include "catalog/model.h"
#include "cluster/admin.h"
#include "cluster/error.h"
#include "cluster/node.h"
#include "cluster/partition_table.h"
#include "storage/journal.h"
#include "storage/log_config.h"
#include "storage/log_dir.h"
#include "storage/memory_volume.h"
#include "storage/partition_log.h"
#include "storage/testing_compaction.h"
#include "storage/testing_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

namespace kaas::cluster {
namespace {

using storage::Fault;
using storage::MemoryVolume;
using storage::Operation;
using Move = PartitionTable::Move;

class LogDirsTest : public ::testing::Test {
protected:
    LogDirsTest() { config_.segment_bytes = 1'000; }  // some segments to carry

    NodeOptions options() {
        NodeOptions options;
        options.id = base::BrokerId(1);
        options.volumes = {{.name = "a", .volume = a_.get()}, {.name = "b", .volume = b_.get()}};
        if (c_) options.volumes.push_back({.name = "c", .volume = c_.get()});
        options.endpoints = {{"PLAINTEXT", "PLAINTEXT", "127.0.0.1", 9092}};
        options.log_config = [this](const catalog::ConfigMap&) { return config_; };
        options.io_pool = &pool_;
        options.logs = logs_;
        return options;
    }
    void start() {
        auto node = Node::start(options());
        ASSERT_TRUE(node) << node.error().context;
        node_ = std::move(*node);
    }
    /// The machine dies and comes back.
    void crash(std::uint64_t seed) {
        for (auto* volume : {a_.get(), b_.get()}) volume->halt_at(volume->steps());
        node_.reset();
        for (auto* volume : {a_.get(), b_.get()}) volume->crash({.seed = seed});
    }
    /// Partition 0 lies on a, 1 on b, and so on.
    void create(int partitions = 2) {
        CreateTopics request;
        request.topics = {{.name = "orders", .partitions = partitions}};
        std::promise<bool> done;
        node_->controller().create_topics(request,
                                          {&here_, [&](Result<std::vector<CreatedTopic>> made) {
                                               done.set_value(made && made->front().outcome);
                                           }});
        ASSERT_TRUE(done.get_future().get());
        ASSERT_EQ(partition(0).volume(), "a");
        ASSERT_EQ(partition(1).volume(), "b");
    }
    catalog::Partition partition(int index) {
        return node_->partitions().image()->topic("orders")->partitions[static_cast<std::size_t>(
            index)];
    }
    base::TopicPartition id(int index) {
        return {node_->partitions().image()->topic("orders")->id, base::PartitionId(index)};
    }
    Hosted find(int index) {
        return node_->partitions().reader().find("orders", base::PartitionId(index));
    }
    /// True once it is durable.
    bool append(int index, const std::string& value) {
        auto found = find(index);
        if (found.state != Hosting::kServing) return false;
        std::promise<bool> done;
        const auto batch = storage::testing::make_batch({.value = value});
        auto accepted = found.log->append(storage::testing::to_append(
            batch, storage::Acks::kAll, here_,
            [&](storage::Result<storage::Appended> out) { done.set_value(out.has_value()); }));
        return accepted && done.get_future().get();
    }
    std::vector<std::byte> content(int index) {
        auto found = find(index);
        if (!found.log) return {};
        auto bytes = storage::testing::read_all(*found.log, base::Offset(0));
        EXPECT_TRUE(bytes) << (bytes ? "" : bytes.error().context);
        return bytes ? *bytes : std::vector<std::byte>{};
    }
    static void await(const std::function<bool()>& condition) {
        while (!condition()) std::this_thread::yield();
    }
    static bool comes(const std::function<bool()>& condition) {
        const auto deadline = base::Clock::system().now() + std::chrono::seconds(10);
        await([&] { return condition() || base::Clock::system().now() > deadline; });
        return condition();
    }
    bool comes_by_ticks(const std::function<bool()>& condition) {
        return comes([&] {
            node_->partitions().tick();
            return condition();
        });
    }
    /// True once the controller has heard that nothing is left of the topic.
    bool is_gone(base::TopicId topic) {
        const auto image = node_->partitions().image();
        return image->topic(topic) == nullptr && image->deletions().empty();
    }
    void await_moved(const std::string& volume) {
        await(
            [&] { return partition(0).volume() == volume && find(0).state == Hosting::kServing; });
    }
    /// Moves partition 0 from a to b; `beside` runs once, when the first segment has been copied.
    void during_a_move(const std::function<void()>& beside) {
        std::atomic<bool> done = false;
        b_->set_hook([&](const MemoryVolume::Step& step) -> std::optional<Fault> {
            if (step.operation == Operation::kSyncDirectory && step.path == directory() &&
                !done.exchange(true))
                beside();
            return std::nullopt;
        });
        ASSERT_EQ(node_->partitions().move(id(0), "b"), Move::kBegun);
        await_moved("b");
        b_->set_hook(nullptr);
        ASSERT_TRUE(done);
    }
    void delete_records(std::int64_t before) {
        std::promise<bool> done;
        find(0).log->delete_records(
            base::Offset(before), here_,
            [&](const storage::Result<base::Offset>& out) { done.set_value(out.has_value()); });
        EXPECT_TRUE(done.get_future().get());
    }
    static std::optional<Fault> fail_unlink(const MemoryVolume::Step& step) {
        if (step.operation != Operation::kUnlink) return std::nullopt;
        return Fault{storage::ErrorCode::kIo, Fault::Effect::kNone};
    }
    bool is_moving() {
        const auto stored = node_->partitions().stored();
        return std::ranges::any_of(stored, &PartitionTable::Stored::is_future);
    }
    /// Once what was dropped has gone, the partition's segments on a volume are those of its view.
    void expect_only_named_files(const std::string& volume) {
        const auto log = find(0).log;
        std::set<std::string> named;
        const auto view = log->view();
        for (const auto& span : *view.sealed) named.insert(span.segment->path());
        named.insert(view.last.segment->path());
        auto& files = volume == "a" ? *a_ : *b_;
        (void)comes_by_ticks([&] { return logs_below(files, directory()) == named; });
        EXPECT_EQ(logs_below(files, directory()), named);
    }
    static std::set<std::string> logs_below(MemoryVolume& volume, const std::string& path) {
        std::set<std::string> found;
        if (path.ends_with(".log")) found.insert(path);
        const auto names = volume.list(path);
        if (!names) return found;
        for (const auto& name : *names) found.merge(logs_below(volume, path + "/" + name));
        return found;
    }
    std::string directory() { return "orders." + id(0).topic.uuid.to_string() + "/0"; }

    storage::LogConfig config_;  ///< of every topic that is created
    storage::LogDirOptions logs_;
    base::InlineExecutor here_;
    std::unique_ptr<MemoryVolume> a_ = std::make_unique<MemoryVolume>("/a");
    std::unique_ptr<MemoryVolume> b_ = std::make_unique<MemoryVolume>("/b");
    std::unique_ptr<MemoryVolume> c_;  ///< for whom it has
    base::ThreadPool pool_{"test-io", 2};
    std::unique_ptr<Node> node_;
};

TEST_F(LogDirsTest, VolumeThatFailsUnderLoadTakesOnlyItsOwnAlong) {
    start();
    create();
    ASSERT_TRUE(append(0, "x") && append(1, "y"));
    const auto before = content(1);
    b_->set_hook([](const MemoryVolume::Step& step) -> std::optional<Fault> {
        if (step.operation == Operation::kSync || step.operation == Operation::kWrite)
            return Fault{storage::ErrorCode::kIo, Fault::Effect::kNone};
        return std::nullopt;
    });
    EXPECT_FALSE(append(1, "lost"));
    node_->partitions().tick();
    EXPECT_EQ(find(1).state, Hosting::kOffline);
    EXPECT_EQ(node_->partitions().offline(), 1U);
    for (int i = 0; i < 20; ++i) EXPECT_TRUE(append(0, "served")) << i;

    b_->set_hook(nullptr);  // mended: it comes back by itself
    await([&] {
        node_->partitions().tick();
        return find(1).state == Hosting::kServing;
    });
    EXPECT_EQ(content(1), before) << "nothing of what failed, all of what was acknowledged";
    EXPECT_TRUE(append(1, "z"));
}

TEST_F(LogDirsTest, PartitionMovesWithAllItsRecordsAndLeavesNothing) {
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

TEST_F(LogDirsTest, RecordsThatComeDuringAMoveAreThereOnceInOrder) {
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

TEST_F(LogDirsTest, WhatComesAfterTheLastLookOfACopyIsBroughtOver) {
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

TEST_F(LogDirsTest, DeathAtAnyStepOfAMoveLosesNothing) {
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

TEST_F(LogDirsTest, MoveThatCannotWriteLeavesThePartitionWhereItIs) {
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

TEST_F(LogDirsTest, CompactionThatEndsDuringAMoveLeavesNoRecordTwiceAndNoFile) {
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

TEST_F(LogDirsTest, CompactionThatStillRunsWhenTheMoveIsDoneDoesNoHarm) {
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

TEST_F(LogDirsTest, RecordsThatAreDeletedDuringAMoveDoNotComeBack) {
    config_.file_delete_delay_ms = 500;  // longer than the move, which goes on beside the files
    start();
    create();
    for (int i = 0; i < 30; ++i) ASSERT_TRUE(append(0, std::string(100, 'a')));
    during_a_move([&] { delete_records(25); });
    EXPECT_EQ(find(0).log->earliest()->offset, base::Offset(25));
    EXPECT_EQ(find(0).log->latest(storage::Isolation::kReadUncommitted)->offset, base::Offset(30));
    expect_only_named_files("b");
}

TEST_F(LogDirsTest, SegmentsWhoseFilesGoDuringAMoveDoNotHoldItUp) {
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

TEST_F(LogDirsTest, TopicThatIsDeletedDuringAMoveLeavesNothing) {
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

TEST_F(LogDirsTest, OldVolumeThatCannotBeClearedIsTriedAgain) {
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

TEST_F(LogDirsTest, MoveIsNotForgottenByATickWhileTheOldLogCloses) {
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

TEST_F(LogDirsTest, MoveThatIsTakenBackAtTheLastMomentLeavesNothing) {
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

TEST_F(LogDirsTest, JournalOfTheOldVolumeNeedsNothingOfALogThatLeftWithoutALastLine) {
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

TEST_F(LogDirsTest, NeverWrittenSiblingOfWhatMovesCanBeWritten) {
    start();
    create(4);
    ASSERT_TRUE(append(0, "x"));
    ASSERT_EQ(partition(2).volume(), "a");
    ASSERT_EQ(node_->partitions().move(id(0), "b"), Move::kBegun);
    await_moved("b");
    await([&] { return !a_->list(directory()); });
    EXPECT_TRUE(append(2, "first"));
}

TEST_F(LogDirsTest, DeletedTopicTakesAlongWhatAnEarlierLifeCouldNotRemove) {
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

TEST_F(LogDirsTest, NeverWrittenPartitionMovesToo) {
    start();
    create();
    ASSERT_EQ(node_->partitions().move(id(0), "b"), Move::kBegun);
    await_moved("b");
    EXPECT_TRUE(append(0, "first"));
    EXPECT_EQ(node_->partitions().move(id(0), "b"), Move::kBegun) << "it is there already";
    EXPECT_EQ(node_->partitions().move({id(0).topic, base::PartitionId(9)}, "b"), Move::kNotHere);
}

TEST_F(LogDirsTest, CordonedVolumeGetsNoNewPartition) {
    start();
    AlterConfigs request{.resource = base::BrokerId(1), .values = {{"cordoned.log.dirs", "/b"}}};
    std::promise<bool> done;
    node_->controller().alter_configs(request, {&here_, [&](Result<std::monostate> result) {
                                                    done.set_value(result.has_value());
                                                }});
    ASSERT_TRUE(done.get_future().get());
    CreateTopics more;
    more.topics = {{.name = "orders", .partitions = 4}};
    std::promise<void> made;
    node_->controller().create_topics(
        more, {&here_, [&](const Result<std::vector<CreatedTopic>>&) { made.set_value(); }});
    made.get_future().get();
    for (int i = 0; i < 4; ++i) EXPECT_EQ(partition(i).volume(), "a");
    const auto dirs = node_->log_dirs();
    ASSERT_EQ(dirs.size(), 2U);
    EXPECT_FALSE(dirs[0].cordoned);
    EXPECT_TRUE(dirs[1].cordoned);
}

TEST_F(LogDirsTest, VolumeThatCannotBeReadAtAStartIsDoneWithout) {
    start();
    create();
    ASSERT_TRUE(append(0, "x"));
    node_.reset();
    b_->set_hook([](const MemoryVolume::Step&) -> std::optional<Fault> {
        return Fault{storage::ErrorCode::kIo, Fault::Effect::kNone};
    });
    start();
    await([&] { return node_->partitions().opening() == 0; });
    EXPECT_TRUE(append(0, "y"));
    EXPECT_EQ(find(1).state, Hosting::kOffline);
    ASSERT_EQ(node_->missing_volumes().size(), 1U);
    EXPECT_THAT(node_->missing_volumes()[0].why, ::testing::HasSubstr("mend it"));
}

TEST_F(LogDirsTest, VolumeThatTakesNoWritesAtAStartIsDoneWithout) {
    start();
    create();
    ASSERT_TRUE(append(0, "x"));
    node_.reset();
    for (const auto refused : {Operation::kLock, Operation::kMakeDirectory}) {
        b_->set_hook([=](const MemoryVolume::Step& step) -> std::optional<Fault> {
            if (step.operation != refused) return std::nullopt;
            return Fault{storage::ErrorCode::kIo, Fault::Effect::kNone};
        });
        start();
        await([&] { return node_->partitions().opening() == 0; });
        EXPECT_TRUE(append(0, "y"));
        EXPECT_EQ(find(1).state, Hosting::kOffline);
        ASSERT_EQ(node_->missing_volumes().size(), 1U);
        EXPECT_EQ(node_->missing_volumes()[0].name, "b");
        EXPECT_EQ(node_->missing_volumes()[0].partitions, 1U);
        node_.reset();
    }
    b_->set_hook({});
    start();
    await([&] { return node_->partitions().opening() == 0; });
    EXPECT_TRUE(append(1, "z"));
}

TEST_F(LogDirsTest, LostControlLogIsNoNewCluster) {
    start();
    create();
    node_.reset();
    const auto file = "__cluster/control/00000001/control-1.jsonl";
    for (const bool empty : {true, false}) {
        ASSERT_TRUE(a_->unlink(file));
        if (empty) ASSERT_TRUE(a_->create(file));
        auto refused = Node::start(options());
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error().code, ErrorCode::kWrongCluster);
        EXPECT_THAT(refused.error().context, ::testing::HasSubstr("holds no control log"));
    }
}

}  // namespace
}  // namespace kaas::cluster
