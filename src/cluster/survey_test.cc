// Goal: a start turns back, with a line that names the directory and the remedy, wherever it would
// fork a cluster, mix two, or open a partition empty; and it finds a cluster in whatever order its
// directories are named. Method: real nodes, one after the other, on volumes in memory.

#include "cluster/survey.h"

#include "base/bytes.h"
#include "base/executor.h"
#include "base/ids.h"
#include "base/thread_pool.h"
#include "catalog/model.h"
#include "cluster/admin.h"
#include "cluster/error.h"
#include "cluster/identity.h"
#include "cluster/node.h"
#include "cluster/partition_table.h"
#include "storage/log_config.h"
#include "storage/memory_volume.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace kaas::cluster {
namespace {

using storage::MemoryVolume;
using ::testing::HasSubstr;

class SurveyTest : public ::testing::Test {
protected:
    static NamedVolume derived(std::string name, MemoryVolume& volume) {
        return {.name = std::move(name), .volume = &volume, .name_chosen = false};
    }
    NodeOptions with(std::vector<NamedVolume> volumes) {
        NodeOptions options;
        options.id = base::BrokerId(1);
        options.volumes = std::move(volumes);
        options.endpoints = {{"PLAINTEXT", "PLAINTEXT", "127.0.0.1", 9092}};
        options.log_config = [](const catalog::ConfigMap&) { return storage::LogConfig{}; };
        options.io_pool = &pool_;
        return options;
    }
    /// /a and /b, in this order.
    NodeOptions usual() { return with({derived("default", a_), derived("b", b_)}); }
    std::unique_ptr<Node> start(NodeOptions options) {
        auto node = Node::start(std::move(options));
        EXPECT_TRUE(node) << node.error().context;
        return node ? std::move(*node) : nullptr;
    }
    /// The line that a start is refused with.
    std::string refusal(NodeOptions options, ErrorCode code = ErrorCode::kWrongCluster) {
        auto node = Node::start(std::move(options));
        EXPECT_FALSE(node);
        if (node) return {};
        EXPECT_EQ(node.error().code, code);
        return node.error().context;
    }
    /// Half of its partitions on each volume.
    bool create(Node& node, const std::string& name, int partitions) {
        CreateTopics request;
        request.topics = {{.name = name, .partitions = partitions}};
        std::promise<bool> done;
        node.controller().create_topics(request,
                                        {&here_, [&](Result<std::vector<CreatedTopic>> made) {
                                             done.set_value(made && made->front().outcome);
                                         }});
        return done.get_future().get();
    }
    static void await_open(Node& node) {
        while (node.partitions().opening() > 0) std::this_thread::yield();
    }
    static base::LeaderEpoch epoch_of(Node& node, int partition) {
        return node.partitions()
            .image()
            ->topic("orders")
            ->partitions[static_cast<std::size_t>(partition)]
            .leader_epoch;
    }

    base::InlineExecutor here_;
    MemoryVolume a_{"/a"};
    MemoryVolume b_{"/b"};
    MemoryVolume c_{"/c"};
    base::ThreadPool pool_{"test-io", 2};
};

TEST_F(SurveyTest, OrderOfDirectoriesMeansNothing) {
    const auto id = start(usual())->cluster_id();
    {
        auto node = start(usual());
        ASSERT_TRUE(create(*node, "orders", 4));
    }
    auto node = start(with({derived("default", b_), derived("a", a_)}));
    EXPECT_EQ(node->cluster_id(), id);
    await_open(*node);
    EXPECT_EQ(node->partitions().serving(), 4U);
    EXPECT_EQ(node->partitions().offline(), 0U);
    EXPECT_FALSE(b_.list("__cluster")) << "no second control log";
}

TEST_F(SurveyTest, NewFirstDirectoryJoinsTheClusterOfTheSecond) {
    const auto id = start(with({derived("default", a_)}))->cluster_id();
    auto node = start(with({derived("default", c_), derived("a", a_)}));
    EXPECT_EQ(node->cluster_id(), id);
    ASSERT_TRUE(create(*node, "orders", 2));
    EXPECT_EQ((*read_identity(c_))->volume, "c") << "'default' is the other one's name";
    EXPECT_EQ((*read_identity(c_))->cluster_volume, "default");
}

TEST_F(SurveyTest, ClusterWithoutItsOwnFilesIsNotMadeAnew) {
    start(usual());
    for (auto* first : {&c_, &b_}) {
        const auto why =
            refusal(with(first == &b_ ? std::vector{derived("default", b_)}
                                      : std::vector{derived("default", c_), derived("b", b_)}));
        EXPECT_THAT(why, HasSubstr("/b belongs to cluster"));
        EXPECT_THAT(why, HasSubstr("they were on volume 'default'"));
        EXPECT_THAT(why, HasSubstr("mount or add"));
    }
    EXPECT_TRUE(c_.list("")->empty()) << "nothing was touched";
}

TEST_F(SurveyTest, DirectoriesOfTwoClustersAreRefused) {
    start(with({derived("default", a_)}));
    start(with({derived("default", b_)}));
    const auto why = refusal(usual());
    EXPECT_THAT(why, HasSubstr("/b belongs to cluster"));
    EXPECT_THAT(why, HasSubstr("as /a does"));
}

TEST_F(SurveyTest, ClusterDirectoryMayBeNamed) {
    auto named = usual();
    named.cluster_volume = &c_;
    const auto id = start(named)->cluster_id();
    EXPECT_FALSE(a_.list("__cluster"));
    EXPECT_EQ(start(named)->cluster_id(), id);
    EXPECT_THAT(refusal(usual()), HasSubstr("/a belongs to cluster"));

    auto other = usual();
    MemoryVolume empty("/d");
    other.cluster_volume = &empty;
    EXPECT_THAT(refusal(other), HasSubstr("/a belongs to cluster"));
}

TEST_F(SurveyTest, VolumeForTheClustersOwnFilesAloneTakesSlotsAndNothingElse) {
    auto named = usual();
    named.cluster_volume = &c_;
    for (int life = 0; life < 2; ++life) {
        auto node = start(named);
        if (life == 0) {
            ASSERT_TRUE(create(*node, "__consumer_offsets", 3));
            ASSERT_TRUE(create(*node, "orders", 4));
        }
        const auto image = node->partitions().image();
        for (const auto& slot : image->topic("__consumer_offsets")->partitions) {
            EXPECT_EQ(slot.volume(), kClusterOnlyVolume);
            EXPECT_TRUE(image->led(slot));
        }
        for (const auto& partition : image->topic("orders")->partitions) {
            EXPECT_NE(partition.volume(), kClusterOnlyVolume);
        }
        EXPECT_EQ(node->log_dirs().size(), 2U) << "it is no directory for partitions";
        EXPECT_TRUE(node->missing_volumes().empty());
    }
}

TEST_F(SurveyTest, WhatIsOnAVolumeThatTakesNoPartitionsAnyMoreIsStillLed) {
    const auto check = [&](NodeOptions options) {
        auto node = start(std::move(options));
        const auto image = node->partitions().image();
        const auto& slot = image->topic("__consumer_offsets")->partitions[0];
        EXPECT_EQ(slot.volume(), "default");
        EXPECT_TRUE(image->led(slot));
        await_open(*node);
        EXPECT_EQ(node->partitions().serving(), 4U) << "what is there is served";
        EXPECT_TRUE(node->missing_volumes().empty());
    };
    {
        auto node = start(usual());
        ASSERT_TRUE(create(*node, "__consumer_offsets", 1));
        ASSERT_TRUE(create(*node, "orders", 4));
    }
    check(usual());
    auto without = with({derived("b", b_)});
    without.cluster_volume = &a_;
    check(without);
    check(usual());
}

TEST_F(SurveyTest, NamedClusterDirectoryMustBeTheOneThatIsThere) {
    start(usual());
    auto named = usual();
    named.cluster_volume = &c_;
    const auto why = refusal(named);
    EXPECT_THAT(why, HasSubstr("kaas.cluster.dir: /c is new"));
    EXPECT_THAT(why, HasSubstr("in /a"));
}

TEST_F(SurveyTest, DirectoryOfAnotherBrokerIsRefused) {
    start(usual());
    auto other = usual();
    other.id = base::BrokerId(7);
    const auto why = refusal(other);
    EXPECT_THAT(why, HasSubstr("/a was written by broker 1, and node.id is 7"));
    EXPECT_THAT(why, HasSubstr("set node.id=1"));
}

TEST_F(SurveyTest, ApachesDataIsRefused) {
    ASSERT_TRUE(b_.create("meta.properties"));
    EXPECT_THAT(refusal(usual()), HasSubstr("/b holds data of Apache Kafka"));
    EXPECT_TRUE(a_.list("")->empty());
}

TEST_F(SurveyTest, VolumeKeepsTheNameThatItHas) {
    start(usual());
    auto why = refusal(with({derived("default", a_), {.name = "fast", .volume = &b_}}));
    EXPECT_THAT(why, HasSubstr("/b is volume 'b'"));
    EXPECT_THAT(why, HasSubstr("kaas.volume.b.path"));
    why = refusal(with({derived("default", a_), derived("b", b_), {.name = "b", .volume = &c_}}));
    EXPECT_THAT(why, HasSubstr("would both be volume 'b'"));
}

TEST_F(SurveyTest, VolumeLeftOutIsMissedNotReplaced) {
    {
        auto node = start(usual());
        ASSERT_TRUE(create(*node, "orders", 4));
    }
    const auto check = [&](NodeOptions options, const char* why) {
        auto node = start(std::move(options));
        await_open(*node);
        EXPECT_EQ(node->partitions().serving(), 2U);
        EXPECT_EQ(node->partitions().offline(), 2U);
        ASSERT_EQ(node->missing_volumes().size(), 1U);
        const auto& missing = node->missing_volumes().front();
        EXPECT_EQ(missing.name, "b");
        EXPECT_EQ(missing.path, "/b");
        EXPECT_EQ(missing.partitions, 2U);
        EXPECT_THAT(missing.why, HasSubstr(why));
        const auto image = node->partitions().image();
        const auto* topic = image->topic("orders");
        EXPECT_EQ(image->leader(topic->partitions[0]) == catalog::kNoBroker,
                  topic->partitions[0].volume() == "b");
        for (int i = 0; i < 4; ++i) {
            const bool here = topic->partitions[static_cast<std::size_t>(i)].volume() != "b";
            auto found = node->partitions().reader().find("orders", base::PartitionId(i));
            EXPECT_EQ(found.state, here ? Hosting::kServing : Hosting::kOffline);
        }
        ASSERT_TRUE(create(*node, "served", 4)) << "the rest goes on";
    };
    base::LeaderEpoch before{-1};
    {
        auto node = start(usual());
        before = epoch_of(*node, 0);
        await_open(*node);
        EXPECT_EQ(node->partitions().serving(), 4U);
    }
    check(with({derived("default", a_)}), "/b is not among the directories");
    {
        auto node = start(usual());
        await_open(*node);
        EXPECT_EQ(node->partitions().offline(), 0U) << "back, and whole";
        EXPECT_TRUE(node->missing_volumes().empty());
    }
    EXPECT_NE(before, base::LeaderEpoch(-1));
}

TEST_F(SurveyTest, EmptyPlaceOfAVolumeStaysEmptyAndBurnsNoEpoch) {
    {
        auto node = start(usual());
        ASSERT_TRUE(create(*node, "orders", 4));
    }
    MemoryVolume mount_point("/b");
    std::vector<base::LeaderEpoch> epochs;
    for (int life = 0; life < 2; ++life) {
        // Another turn in log.dirs changes nothing about whose place it is.
        auto node = start(life == 0 ? with({derived("default", a_), derived("b", mount_point)})
                                    : with({derived("default", mount_point), derived("a", a_)}));
        await_open(*node);
        EXPECT_EQ(node->partitions().offline(), 2U);
        ASSERT_EQ(node->missing_volumes().size(), 1U);
        EXPECT_THAT(node->missing_volumes()[0].why, HasSubstr("/b is empty"));
        for (int i = 0; i < 4; ++i) {
            if (node->partitions()
                    .image()
                    ->topic("orders")
                    ->partitions[static_cast<std::size_t>(i)]
                    .volume() == "b") {
                epochs.push_back(epoch_of(*node, i));
            }
        }
        node->partitions().tick();
    }
    EXPECT_TRUE(mount_point.list("")->empty());
    ASSERT_EQ(epochs.size(), 4U);
    EXPECT_EQ(epochs[0], epochs[2]);
    EXPECT_EQ(epochs[1], epochs[3]);

    auto node = start(with({derived("default", a_), {.name = "anew", .volume = &mount_point}}));
    EXPECT_EQ(node->partitions().offline(), 2U);
    ASSERT_TRUE(create(*node, "on-the-new-one", 4));
    EXPECT_FALSE(mount_point.list("")->empty());
}

TEST_F(SurveyTest, VolumeThatHeldNothingIsForgotten) {
    start(usual());
    auto node = start(with({derived("default", a_)}));
    EXPECT_TRUE(node->missing_volumes().empty());
    EXPECT_EQ(node->partitions().image()->broker(base::BrokerId(1))->volumes.size(), 1U);
}

}  // namespace
}  // namespace kaas::cluster
