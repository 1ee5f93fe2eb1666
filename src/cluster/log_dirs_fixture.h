#pragma once

#include "base/clock.h"
#include "base/executor.h"
#include "base/ids.h"
#include "base/thread_pool.h"
#include "catalog/model.h"
#include "cluster/admin.h"
#include "cluster/error.h"
#include "cluster/node.h"
#include "cluster/partition_table.h"
#include "storage/log_config.h"
#include "storage/log_dir.h"
#include "storage/memory_volume.h"
#include "storage/partition_log.h"
#include "storage/testing_log.h"

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
#include <vector>

namespace kaas::cluster {

/// Real nodes on two volumes in memory, or three.
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
        b_->set_hook([&](const storage::MemoryVolume::Step& step) -> std::optional<storage::Fault> {
            if (step.operation == storage::Operation::kSyncDirectory && step.path == directory() &&
                !done.exchange(true))
                beside();
            return std::nullopt;
        });
        ASSERT_EQ(node_->partitions().move(id(0), "b"), PartitionTable::Move::kBegun);
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
    static std::optional<storage::Fault> fail_unlink(const storage::MemoryVolume::Step& step) {
        if (step.operation != storage::Operation::kUnlink) return std::nullopt;
        return storage::Fault{storage::ErrorCode::kIo, storage::Fault::Effect::kNone};
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
    static std::set<std::string> logs_below(storage::MemoryVolume& volume,
                                            const std::string& path) {
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
    std::unique_ptr<storage::MemoryVolume> a_ = std::make_unique<storage::MemoryVolume>("/a");
    std::unique_ptr<storage::MemoryVolume> b_ = std::make_unique<storage::MemoryVolume>("/b");
    std::unique_ptr<storage::MemoryVolume> c_;  ///< for whom it has
    base::ThreadPool pool_{"test-io", 2};
    std::unique_ptr<Node> node_;
};

}  // namespace kaas::cluster
