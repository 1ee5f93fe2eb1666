// Goal: a node starts on an empty volume, serves what is created on it, keeps it over clean and
// unclean ends, refuses a directory that is in use, of another cluster, or of a later format; and a
// start that dies at any step is followed by a good one. Method: real nodes with their threads on a
// volume in memory that is halted at each step in turn; a "killed" node is one whose machine
// crashed under it.

#include "cluster/node.h"

#include "base/bytes.h"
#include "base/clock.h"
#include "base/executor.h"
#include "base/ids.h"
#include "base/metrics.h"
#include "base/thread_pool.h"
#include "catalog/model.h"
#include "catalog/slot.h"
#include "cluster/admin.h"
#include "cluster/election.h"
#include "cluster/error.h"
#include "cluster/partition_table.h"
#include "cluster/session.h"
#include "cluster/slot_host.h"
#include "cluster/slot_table.h"
#include "cluster/testing_slots.h"
#include "cluster/topic_reclaimer.h"
#include "storage/log_config.h"
#include "storage/memory_volume.h"
#include "storage/partition_log.h"
#include "storage/testing_log.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <expected>
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
namespace {

using namespace std::chrono_literals;
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

    /// What happens in the background happens soon; a test that waits for ever is killed by its
    /// time limit.
    static void await(const std::function<bool()>& condition) {
        while (!condition()) std::this_thread::yield();
    }

    base::InlineExecutor here_;
    MemoryVolume volume_;
    base::ThreadPool pool_{"test-io", 2};
};

TEST_F(NodeTest, ATakeoverIsMeasuredFromTheStandForElection) {
    base::ManualClock clock;  // stands at one hour: a duration that began at zero would show
    base::metrics::Registry metrics;
    auto with_metrics = options();
    with_metrics.clock = &clock;
    with_metrics.metrics = &metrics;
    auto node = Node::start(std::move(with_metrics));
    ASSERT_TRUE(node) << node.error().context;
    auto& took = metrics.histogram("kaas_controller_failover_duration_seconds", "");
    EXPECT_EQ(took.counts()[0], 1U);
    EXPECT_EQ(took.sum_us(), 0U);
}

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
    EXPECT_EQ(node->partitions().image()->topic("orders")->id, *id);
    EXPECT_EQ(node->partitions().serving(), 3U);
    EXPECT_EQ(node->partitions().opening(), 0U);
}

/// The machine dies under the node: its objects go, with nothing more written.
void kill(MemoryVolume& volume, std::unique_ptr<Node>& node, storage::CrashFate fate = {}) {
    volume.halt_at(volume.steps());
    node.reset();
    volume.crash(fate);
}

TEST_F(NodeTest, SlotsAreServedWhenTheirTopicsAnswerComesAndAfterADeath) {
    ListHost host(here_);
    auto with_slots = options();
    with_slots.slot_host = &host;
    auto started = Node::start(with_slots);
    ASSERT_TRUE(started) << started.error().context;
    auto node = std::move(*started);
    ASSERT_TRUE(create(*node, "__consumer_offsets", 20));
    for (int i = 0; i < 20; ++i) {
        EXPECT_TRUE(host.list({catalog::SlotKind::kGroup, base::PartitionId(i)})) << i;
    }
    EXPECT_EQ(node->slots()->led(), 20U);
    EXPECT_EQ(node->partitions().serving(), 0U);
    const SlotId id{catalog::SlotKind::kGroup, base::PartitionId(7)};
    std::promise<bool> stands;
    ASSERT_TRUE(host.add(id, "a", [&](bool durable) { stands.set_value(durable); }));
    EXPECT_TRUE(stands.get_future().get());
    kill(volume_, node);
    EXPECT_EQ(host.list(id), std::nullopt);

    started = Node::start(with_slots);
    ASSERT_TRUE(started) << started.error().context;
    await([&] { return (*started)->slots()->led() == 20; });
    EXPECT_EQ(host.list(id), ListHost::List{"a"});
}

TEST_F(NodeTest, TopicsOutliveACleanEnd) {
    auto id = create(*start(), "orders", 2);
    ASSERT_TRUE(id);
    auto node = start();
    const auto image = node->partitions().image();
    ASSERT_NE(image->topic("orders"), nullptr);
    EXPECT_EQ(image->topic("orders")->id, *id);
    EXPECT_EQ(image->topic("orders")->partitions[0].leader_epoch, base::LeaderEpoch(1));
    EXPECT_EQ(image->leader(image->topic("orders")->partitions[0]), base::BrokerId(1));
}

TEST_F(NodeTest, CleanEndLeavesNoSession) {
    start();
    EXPECT_TRUE(volume_.list("__sessions")->empty());
}

TEST_F(NodeTest, DeadLifesSessionIsMarkedBeforeAnythingIsGivenAnew) {
    auto node = start();
    ASSERT_TRUE(create(*node, "orders"));
    const auto old = node->partitions().image()->broker(base::BrokerId(1))->sessions.at("main");
    kill(volume_, node);
    EXPECT_EQ(volume_.list("__sessions")->size(), 1U);
    node = start();
    const auto sessions = *volume_.list("__sessions");
    ASSERT_EQ(sessions.size(), 1U);
    const auto now = node->partitions().image()->broker(base::BrokerId(1))->sessions.at("main");
    EXPECT_NE(now, old);
    EXPECT_EQ("__sessions/" + sessions[0], session_path(base::BrokerId(1), now));
    auto reader = node->partitions().reader();
    while (node->partitions().opening() > 0) std::this_thread::yield();
    EXPECT_EQ(reader.find("orders", base::PartitionId(0)).state, Hosting::kServing);
}

TEST_F(NodeTest, SecondStartThatSharesAnyVolumeIsRefused) {
    MemoryVolume shared;
    auto with = options();
    with.volumes = {{"main", &volume_}, {"shared", &shared}};
    auto node = Node::start(with);
    ASSERT_TRUE(node) << node.error().context;
    auto other = options();
    other.volumes = {{"shared", &shared}};
    auto second = Node::start(other);
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, ErrorCode::kInUse);
    EXPECT_TRUE(create(**node, "still-served")) << "the first one was not touched";
}

TEST_F(NodeTest, SecondLiveStartIsRefusedWithThePid) {
    auto node = start();
    auto second = Node::start(options());
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, ErrorCode::kInUse);
    EXPECT_NE(second.error().context.find(std::to_string(::getpid())), std::string::npos)
        << second.error().context;
    EXPECT_TRUE(create(*node, "still-served")) << "the first one was not touched";
}

TEST_F(NodeTest, OtherClusterIsRefusedBeforeAnythingIsTouched) {
    auto mine = options();
    mine.cluster_id = "mine";
    ASSERT_TRUE(Node::start(std::move(mine)));
    const auto steps = volume_.list("__cluster/election")->size();
    auto other = options();
    other.cluster_id = "other";
    auto refused = Node::start(std::move(other));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kWrongCluster);
    EXPECT_NE(refused.error().context.find("'mine'"), std::string::npos);
    EXPECT_EQ(volume_.list("__cluster/election")->size(), steps);
}

TEST_F(NodeTest, LaterFormatIsRefusedBeforeAnythingIsTouched) {
    auto file = volume_.create("kaas.json");
    ASSERT_TRUE(file);
    const std::string text = R"({"format":9,"cluster":"c"})";
    const auto bytes = base::as_bytes(text);
    ASSERT_TRUE((*file)->write_at(0, {&bytes, 1}));
    auto refused = Node::start(options());
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kNewerFormat);
    EXPECT_FALSE(volume_.list("__cluster"));
}

TEST_F(NodeTest, DeletedTopicGoesFromImageLookUpAndVolume) {
    auto node = start();
    ASSERT_TRUE(create(*node, "orders", 2));
    ASSERT_TRUE(remove(*node, "orders"));
    auto reader = node->partitions().reader();
    EXPECT_EQ(reader.find("orders", base::PartitionId(0)).state, Hosting::kUnknown);
    EXPECT_EQ(node->partitions().image()->topic("orders"), nullptr);
    await([&] { return node->partitions().image()->deletions().empty(); });
    EXPECT_TRUE(volume_.list(std::string(kDeletedDirectory))->empty());
}

TEST_F(NodeTest, DeleteAndCreateAgainInALoopIsANewTopicEachTime) {
    auto node = start();
    std::set<base::TopicId> ids;
    for (int i = 0; i < 20; ++i) {
        auto id = create(*node, "orders");
        ASSERT_TRUE(id) << id.error().context;
        EXPECT_TRUE(ids.insert(*id).second);
        auto found = node->partitions().reader().find("orders", base::PartitionId(0));
        ASSERT_EQ(found.state, Hosting::kServing);
        EXPECT_EQ(found.log->latest(storage::Isolation::kReadUncommitted)->offset, base::Offset(0));
        ASSERT_TRUE(remove(*node, "orders"));
    }
    await([&] { return node->partitions().image()->deletions().empty(); });
}

TEST_F(NodeTest, DeletionGoesOnInTheNextLife) {
    auto node = start();
    ASSERT_TRUE(create(*node, "orders"));
    volume_.fail_nth(storage::Operation::kRename, 1, {});
    ASSERT_TRUE(remove(*node, "orders"));
    kill(volume_, node);
    node = start();
    await([&] { return node->partitions().image()->deletions().empty(); });
    EXPECT_EQ(node->partitions().image()->topic("orders"), nullptr);
}

TEST_F(NodeTest, ProducerIdsAreUniqueOverLives) {
    std::set<std::int64_t> given;
    for (int life = 0; life < 4; ++life) {
        auto node = start();
        for (int i = 0; i < 3; ++i) {
            auto block = producer_ids(*node, 10);
            ASSERT_TRUE(block);
            for (int k = 0; k < block->count; ++k) {
                EXPECT_TRUE(given.insert(block->first.value() + k).second);
            }
        }
        if (life % 2 == 0) kill(volume_, node);
    }
}

TEST_F(NodeTest, PartitionsAddedAreServedToo) {
    auto node = start();
    ASSERT_TRUE(create(*node, "orders"));
    CreatePartitions request;
    request.topics = {{.name = "orders", .count = 4}};
    auto grown = ask<std::vector<GrownTopic>>(
        [&](auto reply) { node->controller().create_partitions(request, std::move(reply)); });
    ASSERT_TRUE(grown);
    auto reader = node->partitions().reader();
    EXPECT_EQ(reader.find("orders", base::PartitionId(3)).state, Hosting::kServing);
}

TEST_F(NodeTest, StartThatDiesAtAnyStepIsFollowedByAGoodOne) {
    for (std::uint64_t at = 0;; ++at) {
        for (std::uint64_t seed = 1; seed <= 3; ++seed) {
            MemoryVolume volume;
            auto with = options();
            with.volumes = {{"main", &volume}};
            volume.halt_at(at);
            auto node = Node::start(with);
            const bool whole = node.has_value() && volume.steps() < at;
            if (node) node->reset();
            volume.crash({.seed = seed});
            auto next = Node::start(with);
            ASSERT_TRUE(next) << "halted at step " << at << ", seed " << seed << ": "
                              << next.error().context;
            ASSERT_TRUE(create(**next, "works"));
            if (whole) return;
        }
    }
}

TEST_F(NodeTest, AnsweredTopicsSurviveDeathAtAnyStep) {
    for (std::uint64_t at = 0;; ++at) {
        MemoryVolume volume;
        auto with = options();
        with.volumes = {{"main", &volume}};
        auto node = Node::start(with);
        ASSERT_TRUE(node);
        ASSERT_TRUE(create(**node, "first"));
        const auto limit = volume.steps() + at;
        volume.halt_at(limit);
        const bool second = create(**node, "second").has_value();
        const bool gone = second && remove(**node, "first").has_value();
        const bool whole = gone && volume.steps() < limit;
        kill(volume, *node, {.seed = at});
        auto next = Node::start(with);
        ASSERT_TRUE(next) << "halted " << at << " steps in: " << next.error().context;
        const auto image = (*next)->partitions().image();
        if (second) {
            EXPECT_NE(image->topic("second"), nullptr) << at;
        } else {
            EXPECT_NE(image->topic("first"), nullptr) << at;
        }
        if (gone) EXPECT_EQ(image->topic("first"), nullptr) << at;
        if (whole) return;
    }
}

/// A volume that does not answer syncs of a kind until the test lets it. Its threads are those of
/// the node, which cannot be joined before.
class Hang {
public:
    Hang(MemoryVolume& volume, std::string file_end)
        : file_end_(std::move(file_end)), until_(let_go_.get_future().share()) {
        volume.set_hook([this](const MemoryVolume::Step& step) -> std::optional<storage::Fault> {
            if (step.operation != storage::Operation::kSync || !step.path.ends_with(file_end_))
                return std::nullopt;
            ++hanging_;
            until_.wait();
            return std::nullopt;
        });
    }
    void let_go() { let_go_.set_value(); }
    [[nodiscard]] int hanging() const { return hanging_; }

private:
    const std::string file_end_;
    std::promise<void> let_go_;
    std::shared_future<void> until_;
    std::atomic<int> hanging_ = 0;
};

TEST_F(NodeTest, ClosingIsBoundedThoughTheCycleHangs) {
    // More than the pool can wait for one after the other: 5 s each.
    constexpr int kPartitions = 40;
    auto node = start();
    const auto topic = create(*node, "busy", kPartitions);
    ASSERT_TRUE(topic);
    auto reader = node->partitions().reader();
    Hang hang(volume_, ".log");
    std::atomic<int> answered = 0;
    for (int i = 0; i < kPartitions; ++i) {
        auto log = reader.find(*topic, base::PartitionId(i)).log;
        ASSERT_NE(log, nullptr);
        ASSERT_TRUE(log->append(storage::testing::to_append(
            storage::testing::make_batch({}), storage::Acks::kAll, here_,
            [&](storage::Result<storage::Appended>) { ++answered; })));
    }
    await([&] { return hang.hanging() > 0; });
    const auto began = base::Clock::system().now();
    node->partitions().close(100ms);
    EXPECT_LT(base::Clock::system().now() - began, 20s);
    EXPECT_EQ(answered, kPartitions) << "nobody waits for the volume";
    hang.let_go();
    node->stop(60s);
}

TEST_F(NodeTest, ClosingIsBoundedThoughEveryReleaseHangs) {
    auto node = start();
    const auto topic = create(*node, "idle", 4);
    ASSERT_TRUE(topic);
    auto reader = node->partitions().reader();
    for (int i = 0; i < 4; ++i) {
        std::promise<bool> good;
        auto log = reader.find(*topic, base::PartitionId(i)).log;
        ASSERT_TRUE(log->append(storage::testing::to_append(
            storage::testing::make_batch({}), storage::Acks::kAll, here_,
            [&](storage::Result<storage::Appended> result) { good.set_value(!!result); })));
        ASSERT_TRUE(good.get_future().get());
    }
    Hang hang(volume_, ".jsonl");
    EXPECT_FALSE(node->partitions().close(100ms));
    EXPECT_GT(hang.hanging(), 0);
    hang.let_go();
    node->stop(60s);
}

TEST_F(NodeTest, PartitionsWithTransactionsThatTheirCoordinatorForgotAreCounted) {
    base::ManualClock clock;
    base::metrics::Registry metrics;
    auto with = options();
    with.clock = &clock;
    with.metrics = &metrics;
    with.transaction_max_timeout = 10min;
    auto started = Node::start(std::move(with));
    ASSERT_TRUE(started) << started.error().context;
    const auto topic = create(**started, "orders", 2);
    ASSERT_TRUE(topic);
    auto late = [&] {
        double value = -1;
        metrics.visit([&](const std::string& name, const base::metrics::Registry::Family& family) {
            if (name != "kaas_partitions_with_late_transactions") return;
            value = family.series.begin()->second.sample();
        });
        return value;
    };
    EXPECT_EQ(late(), 0);
    auto reader = (*started)->partitions().reader();
    auto log = reader.find(*topic, base::PartitionId(1)).log;
    ASSERT_NE(log, nullptr);
    std::promise<bool> good;
    auto request = storage::testing::to_append(
        storage::testing::make_batch(
            {.producer_id = 1, .producer_epoch = 0, .sequence = 0, .transactional = true}),
        storage::Acks::kAll, here_,
        [&](storage::Result<storage::Appended> result) { good.set_value(!!result); });
    request.transaction_version = 0;
    ASSERT_TRUE(log->append(std::move(request)));
    ASSERT_TRUE(good.get_future().get());
    clock.advance(15min);
    EXPECT_EQ(late(), 0) << "five minutes of grace, as in Apache";
    clock.advance(1ms);
    EXPECT_EQ(late(), 1);
}

/// A disk without space for whatever is named so.
void fill(MemoryVolume& volume, const std::string& prefix) {
    volume.set_hook([prefix](const MemoryVolume::Step& step) -> std::optional<storage::Fault> {
        using enum storage::Operation;
        const bool takes = step.operation == kWrite || step.operation == kCreate ||
                           step.operation == kMakeDirectory;
        if (!takes || !step.path.starts_with(prefix)) return std::nullopt;
        return storage::Fault{storage::ErrorCode::kNoSpace};
    });
}

TEST_F(NodeTest, ControlLogWithoutSpaceCostsAReignAndNothingElse) {
    base::ManualClock clock;
    base::metrics::Registry metrics;
    auto with = options();
    with.clock = &clock;
    with.metrics = &metrics;
    std::atomic<bool> lost = false;
    with.on_lost = [&](const Error&) { lost = true; };
    auto node = Node::start(std::move(with));
    ASSERT_TRUE(node);
    ASSERT_TRUE(create(**node, "before"));
    auto log = (*node)->partitions().reader().find("before", base::PartitionId(0)).log;
    fill(volume_, "");
    for (int second = 0; second < 100; ++second) {
        auto refused = create(**node, "full");
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error().code, ErrorCode::kNotController);
        clock.advance(1s);
    }
    EXPECT_EQ(metrics.gauge("kaas_is_controller", "").value(), 0);
    EXPECT_FALSE((*node)->controller().reigning());
    EXPECT_EQ((*node)->partitions().reader().find("before", base::PartitionId(0)).log, log)
        << "what is open stays so";
    volume_.set_hook(nullptr);
    await([&] {
        clock.advance(1s);
        return create(**node, "after").has_value();
    });
    EXPECT_LE(volume_.list("__cluster/election")->size(), 3U);
    EXPECT_EQ((*node)->partitions().reader().find("before", base::PartitionId(0)).log, log);
    EXPECT_EQ((*node)->partitions().image()->topic("full"), nullptr);
    EXPECT_EQ(metrics.gauge("kaas_is_controller", "").value(), 1);
    EXPECT_EQ(metrics.counter("kaas_controller_failovers_total", "").value(), 2U);
    EXPECT_FALSE(lost);
}

TEST_F(NodeTest, FailureOfAnyStepOfAnActIsFollowedByAReignOfTheSameProcess) {
    using Effect = storage::Fault::Effect;
    for (const auto effect : {Effect::kNone, Effect::kHalf, Effect::kWhole}) {
        for (std::uint64_t at = 0;; ++at) {
            MemoryVolume volume;
            base::ManualClock clock;
            auto with = options();
            with.volumes = {{"main", &volume}};
            with.clock = &clock;
            with.on_lost = [&](const Error& why) { ADD_FAILURE() << why.context; };
            auto node = Node::start(with);
            ASSERT_TRUE(node);
            ASSERT_TRUE(create(**node, "first"));
            std::atomic<std::uint64_t> passed = 0;
            volume.set_hook([&](const MemoryVolume::Step& step) -> std::optional<storage::Fault> {
                if (!step.path.starts_with("__cluster") || passed++ != at) return std::nullopt;
                return storage::Fault{storage::ErrorCode::kIo, effect};
            });
            const bool second = create(**node, "second").has_value();
            const bool removed = remove(**node, "first").has_value();
            volume.set_hook(nullptr);
            await([&] {
                clock.advance(1s);
                return create(**node, "third").has_value();
            });
            const auto image = (*node)->partitions().image();
            if (second) EXPECT_NE(image->topic("second"), nullptr) << at;
            if (removed) EXPECT_EQ(image->topic("first"), nullptr) << at;
            if (passed <= at) break;
        }
    }
}

TEST_F(NodeTest, LostSessionIsSaidOnce) {
    std::promise<Error> said;
    auto with = options();
    with.on_lost = [&](const Error& why) { said.set_value(why); };
    auto node = Node::start(std::move(with));
    ASSERT_TRUE(node);
    // Another candidate takes office: from then on this node's controller may do nothing.
    ASSERT_TRUE(ElectedEpoch::stand(volume_));
    auto refused = create(**node, "late");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kNotController);
    said.get_future().get();
}

}  // namespace
}  // namespace kaas::cluster
