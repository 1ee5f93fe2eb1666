// Goal: a node starts on an empty volume, serves what is created on it, keeps it over clean and
// unclean ends, refuses a directory that is in use, of another cluster, or of a later format; and a
// start that dies at any step is followed by a good one. Method: real nodes with their threads on a
// volume in memory that is halted at each step in turn; a "killed" node is one whose machine
// crashed under it.

#include "cluster/node.h"

#include "base/thread_pool.h"
#include "cluster/identity.h"
#include "storage/memory_volume.h"
#include "storage/partition_log.h"

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <set>
#include <string>

namespace kaas::cluster {
namespace {

using storage::MemoryVolume;

class NodeTest : public ::testing::Test {
protected:
    NodeOptions options() {
        NodeOptions options;
        options.id = base::BrokerId(1);
        options.volumes = {{"main", &volume_}};
        options.endpoints = {{"PLAINTEXT", "PLAINTEXT", "127.0.0.1", 9092}};
        options.log_config = [](const catalog::ConfigMap&) { return storage::LogConfig{}; };
        options.io_pool = &pool_;
        return options;
    }
    std::unique_ptr<Node> start() {
        auto node = Node::start(options());
        EXPECT_TRUE(node) << node.error().context;
        return node ? std::move(*node) : nullptr;
    }

    template <class T, class Ask>
    Result<T> ask(Ask&& request) {
        std::promise<Result<T>> promise;
        auto answer = promise.get_future();
        request(Reply<T>{&here_, [&](Result<T> result) { promise.set_value(std::move(result)); }});
        return answer.get();
    }
    Result<base::TopicId> create(Node& node, const std::string& name, int partitions = 1) {
        CreateTopics request;
        request.topics = {{.name = name, .partitions = partitions}};
        auto created = ask<std::vector<CreatedTopic>>(
            [&](auto reply) { node.controller().create_topics(request, std::move(reply)); });
        if (!created) return std::unexpected(created.error());
        if (!created->front().outcome) return std::unexpected(created->front().outcome.error());
        return created->front().id;
    }
    Result<void> remove(Node& node, const std::string& name) {
        DeleteTopics request;
        request.topics = {name};
        auto deleted = ask<std::vector<DeletedTopic>>(
            [&](auto reply) { node.controller().delete_topics(request, std::move(reply)); });
        if (!deleted) return std::unexpected(deleted.error());
        return deleted->front().outcome;
    }
    Result<ProducerIdBlock> producer_ids(Node& node, int count) {
        return ask<ProducerIdBlock>(
            [&](auto reply) { node.controller().allocate_producer_ids(count, std::move(reply)); });
    }

    base::InlineExecutor here_;
    MemoryVolume volume_;
    base::ThreadPool pool_{"test-io", 2};
};

TEST_F(NodeTest, CreatedTopicIsServedWhenTheAnswerComes) {
    auto node = start();
    auto id = create(*node, "orders", 3);
    ASSERT_TRUE(id) << id.error().context;
    auto reader = node->partitions().reader();
    for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(reader.find("orders", base::PartitionId(i)).state, Hosting::kServing);
        EXPECT_NE(reader.find(*id, base::PartitionId(i)).log, nullptr);
    }
    EXPECT_EQ(reader.find("orders", base::PartitionId(3)).state, Hosting::kUnknown);
    EXPECT_EQ(reader.find("others", base::PartitionId(0)).state, Hosting::kUnknown);
    EXPECT_EQ(node->images().get()->topic("orders")->id, *id);
    EXPECT_EQ(node->partitions().serving(), 3U);
    EXPECT_EQ(node->partitions().opening(), 0U);
}

TEST_F(NodeTest, TopicsOutliveACleanEnd) {
    auto id = create(*start(), "orders", 2);
    ASSERT_TRUE(id);
    auto node = start();
    const auto image = node->images().get();
    ASSERT_NE(image->topic("orders"), nullptr);
    EXPECT_EQ(image->topic("orders")->id, *id);
    EXPECT_EQ(image->topic("orders")->partitions[0].leader_epoch, base::LeaderEpoch(1));
    EXPECT_EQ(image->leader(image->topic("orders")->partitions[0]), base::BrokerId(1));
}

}  // namespace
}  // namespace kaas::cluster
