// Goal: brokers on one volume become one cluster and stay it: whoever dies, drains or is cut off is
// replaced, by marks and never by time, and comes back as somebody new. Method: real nodes with
// their threads in one process, on a volume in memory; a network between them that can be cut. No
// session times out: what happens, happens because a connection closed.

#include "base/clock.h"
#include "base/executor.h"
#include "base/ids.h"
#include "base/mutex.h"
#include "base/thread_pool.h"
#include "catalog/broker_identity.h"
#include "catalog/image.h"
#include "catalog/model.h"
#include "cluster/admin.h"
#include "cluster/controller_address.h"
#include "cluster/error.h"
#include "cluster/link_messages.h"
#include "cluster/node.h"
#include "cluster/partition_table.h"
#include "cluster/roll_call.h"
#include "cluster/session.h"
#include "cluster/testing_network.h"
#include "cluster/uplink.h"
#include "storage/log_config.h"
#include "storage/memory_volume.h"
#include "storage/partition_log.h"
#include "storage/testing_log.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace kaas::cluster {
namespace {

using namespace std::chrono_literals;

constexpr auto kPatience = 30s;

class NodeClusterTest : public ::testing::Test {
public:
    ~NodeClusterTest() override {
        for (auto& [id, node] : nodes_) end(id, node);
    }

protected:
    static std::uint16_t port_of(int id) { return static_cast<std::uint16_t>(9000 + id); }

    NodeOptions options(int id) {
        NodeOptions options;
        options.id = base::BrokerId(id);
        options.volumes = {{"main", &volume_}};
        if (has_extra_.contains(id)) options.volumes.push_back({"extra", &extra_});
        options.endpoints = {
            {"PLAINTEXT", "PLAINTEXT", "127.0.0.1", 1},
            {std::string(catalog::kInternalListener), "SASL_PLAINTEXT", "127.0.0.1", port_of(id)}};
        options.log_config = [](const catalog::ConfigMap&) { return storage::LogConfig{}; };
        options.io_pool = &pool_;
        options.sharing = Sharing::kShared;
        options.beat_interval = 10ms;
        options.session_timeout = 1h;
        options.death_grace = 20ms;
        options.uplink = [this, id](storage::Volume&) -> Result<std::shared_ptr<Uplink>> {
            return network_.uplink(port_of(id));
        };
        options.probe = [this](const catalog::Broker& broker, auto answer) {
            const auto port = broker.endpoint(catalog::kInternalListener)->port;
            network_.run([this, port, answer = std::move(answer)]() mutable {
                answer(network_.is_refused(port));
            });
        };
        return options;
    }
    std::unique_ptr<Node> make(int id) {
        network_.bind(port_of(id));
        auto node = Node::start(options(id));
        EXPECT_TRUE(node) << node.error().context;
        if (!node) return nullptr;
        network_.serve(port_of(id), (*node)->roll_call());
        return std::move(*node);
    }
    void start(const std::vector<int>& ids) {
        std::map<int, std::future<std::unique_ptr<Node>>> starting;
        for (const int id : ids) {
            starting[id] = std::async(std::launch::async, [this, id] { return make(id); });
        }
        for (auto& [id, node] : starting) nodes_[id] = node.get();
        for (const int id : ids) ASSERT_NE(nodes_[id], nullptr);
    }
    /// A process ends in good order, and its listener with it.
    void end(int id, std::unique_ptr<Node>& node) {
        if (!node) return;
        node->stop(5s);
        network_.close(port_of(id));
        node.reset();
    }
    void end(int id) {
        end(id, nodes_[id]);
        nodes_.erase(id);
    }
    /// For all others its process is gone; it does not know.
    void vanish(int id) {
        network_.cut(port_of(id));
        vanished_.insert(id);
    }
    void return_of(int id) {
        network_.mend(port_of(id));
        vanished_.erase(id);
    }

    static void await(const std::function<bool()>& condition, const char* what) {
        const auto deadline = base::Clock::system().now() + kPatience;
        while (!condition()) {
            if (base::Clock::system().now() > deadline) {
                FAIL() << what << " did not happen";
            }
            std::this_thread::yield();
        }
    }
    [[nodiscard]] std::vector<int> connected() const {
        std::vector<int> ids;
        for (const auto& [id, node] : nodes_) {
            if (!vanished_.contains(id)) ids.push_back(id);
        }
        return ids;
    }
    Node& at(int id) { return *nodes_.at(id); }
    catalog::ImagePtr image(int id) { return at(id).partitions().image(); }
    /// The one that reigns among those who see each other; 0 while there is none.
    int reigning() {
        for (const int id : connected()) {
            if (at(id).controller().reigning()) return id;
        }
        return 0;
    }
    std::set<int> living(int seen_by) {
        std::set<int> ids;
        for (const auto& [id, broker] : image(seen_by)->brokers()) {
            if (broker->living()) ids.insert(id.value());
        }
        return ids;
    }
    /// In the image of whoever reigns.
    void await_living(const std::set<int>& ids) {
        await(
            [&] {
                const int controller = reigning();
                return controller != 0 && living(controller) == ids;
            },
            "everybody's life");
    }
    void await_dead(int id) {
        await(
            [&] {
                const int controller = reigning();
                return controller != 0 && !living(controller).contains(id);
            },
            "its end");
    }
    Result<base::TopicId> create(int id, const std::string& name, int partitions) {
        CreateTopics request;
        request.topics = {{.name = name, .partitions = partitions}};
        std::promise<Result<std::vector<CreatedTopic>>> promise;
        at(id).controller().create_topics(
            request, {&here_, [&](auto result) { promise.set_value(std::move(result)); }});
        auto created = promise.get_future().get();
        if (!created) return std::unexpected(created.error());
        if (!created->front().outcome) return std::unexpected(created->front().outcome.error());
        return created->front().id;
    }
    base::TopicId create(const std::string& name, int partitions) {
        base::TopicId topic;
        await(
            [&] {
                const int controller = reigning();
                auto created = controller == 0 ? fail(ErrorCode::kNotController, "none")
                                               : create(controller, name, partitions);
                if (created) topic = *created;
                return created.has_value();
            },
            "the topic");
        return topic;
    }
    /// How many of its partitions are served, each by the leader that all see.
    int served(base::TopicId topic) {
        int count = 0;
        const auto ids = connected();
        const auto first = image(ids.front());
        const auto* known = first->topic(topic);
        if (known == nullptr) return 0;
        for (std::size_t i = 0; i < known->partitions.size(); ++i) {
            const base::PartitionId partition(static_cast<std::int32_t>(i));
            int serving = 0;
            for (const int id : ids) {
                const auto seen = image(id);
                const auto* there = seen->topic(topic);
                if (there == nullptr || there->partitions.size() <= i) return 0;
                if (there->partitions[i].leader != known->partitions[i].leader) return 0;
                auto reader = at(id).partitions().reader();
                const bool serves = reader.find(topic, partition).state == Hosting::kServing;
                const bool leads = seen->leader(there->partitions[i]) == base::BrokerId(id);
                if (serves != leads) return 0;
                if (serves) ++serving;
            }
            if (serving == 1) ++count;
        }
        return count;
    }
    void await_served(base::TopicId topic, int count) {
        await([&] { return served(topic) == count; }, "service by all leaders");
    }
    /// True when the record was acknowledged.
    bool append(int id, base::TopicId topic, int partition) {
        auto reader = at(id).partitions().reader();
        auto log = reader.find(topic, base::PartitionId(partition)).log;
        if (log == nullptr) return false;
        std::promise<bool> good;
        const bool taken =
            log->append(storage::testing::to_append(storage::testing::make_batch({}),
                                                    storage::Acks::kAll, here_,
                                                    [&](storage::Result<storage::Appended> result) {
                                                        good.set_value(result.has_value());
                                                    }))
                .has_value();
        return taken && good.get_future().get();
    }
    std::vector<int> led_by(int id, base::TopicId topic) {
        std::vector<int> led;
        const auto now = image(connected().front());
        const auto& partitions = now->topic(topic)->partitions;
        for (std::size_t i = 0; i < partitions.size(); ++i) {
            if (now->leader(partitions[i]) == base::BrokerId(id))
                led.push_back(static_cast<int>(i));
        }
        return led;
    }
    int follower() {
        for (const int id : connected()) {
            if (id != reigning()) return id;
        }
        return 0;
    }

    base::InlineExecutor here_;
    storage::MemoryVolume volume_;
    storage::MemoryVolume extra_;
    std::set<int> has_extra_;
    base::ThreadPool pool_{"test-io", 4};
    Network network_;
    std::map<int, std::unique_ptr<Node>> nodes_;
    std::set<int> vanished_;
};

TEST_F(NodeClusterTest, ThoseWhoStartAtOnceAreOneCluster) {
    start({1, 2, 3});
    for (const int id : {1, 2, 3}) {
        EXPECT_EQ(at(id).cluster_id(), at(1).cluster_id());
        await([&] { return living(id) == std::set{1, 2, 3}; }, "everybody hears of everybody");
    }
    int reign = 0;
    for (const int id : {1, 2, 3}) reign += at(id).controller().reigning() ? 1 : 0;
    EXPECT_EQ(reign, 1);
}

TEST_F(NodeClusterTest, EachServesWhatItLeads) {
    start({1, 2, 3});
    await_living({1, 2, 3});
    const auto topic = create("orders", 6);
    await_served(topic, 6);
    for (const int id : {1, 2, 3}) {
        ASSERT_EQ(led_by(id, topic).size(), 2U) << id;
        EXPECT_TRUE(append(id, topic, led_by(id, topic).front()));
    }
}

TEST_F(NodeClusterTest, LostBrokerIsReplacedAndAcknowledgesNothingMore) {
    start({1, 2, 3});
    await_living({1, 2, 3});
    const auto topic = create("orders", 6);
    await_served(topic, 6);
    const int lost = follower();
    const auto led = led_by(lost, topic);
    ASSERT_FALSE(led.empty());
    const auto session = image(lost)->broker(base::BrokerId(lost))->sessions.at("main");
    vanish(lost);
    await_served(topic, 6);
    EXPECT_FALSE(volume_.hold(session_path(base::BrokerId(lost), session))) << "it is marked";
    for (const int partition : led) EXPECT_FALSE(append(lost, topic, partition));
    const auto seen = image(lost);
    const auto& partitions = seen->topic(topic)->partitions;
    await([&] { return at(lost).away()->has(partitions[static_cast<std::size_t>(led[0])]); },
          "it says that it does not lead any more");
    EXPECT_TRUE(at(lost).anything_away());
    for (const int id : connected()) EXPECT_FALSE(at(id).anything_away());
    for (const int id : connected()) EXPECT_FALSE(living(id).contains(lost));
}

TEST_F(NodeClusterTest, LostControllerIsSucceededAndDoesNothingMore) {
    start({1, 2, 3});
    await_living({1, 2, 3});
    const auto topic = create("orders", 6);
    await_served(topic, 6);
    const int lost = reigning();
    const auto epoch = image(lost)->version().epoch;
    vanish(lost);
    await([&] { return reigning() != 0; }, "a successor");
    await_served(topic, 6);
    const int now = reigning();
    EXPECT_GT(image(now)->version().epoch, epoch);
    auto late = create(lost, "late", 1);
    ASSERT_FALSE(late);
    EXPECT_EQ(late.error().code, ErrorCode::kNotController);
    create("after", 2);
    for (const int id : connected()) {
        EXPECT_EQ(image(id)->topic("late"), nullptr);
        EXPECT_FALSE(living(id).contains(lost));
    }
}

TEST_F(NodeClusterTest, ControllerThatIsMissedComesBackAsABroker) {
    start({1, 2, 3});
    await_living({1, 2, 3});
    const auto topic = create("orders", 6);
    await_served(topic, 6);
    const int lost = reigning();
    const auto before = image(lost)->broker(base::BrokerId(lost))->sessions.at("main");
    vanish(lost);
    await_dead(lost);
    await_served(topic, 6);
    return_of(lost);
    await_living({1, 2, 3});
    await_served(topic, 6);
    EXPECT_NE(image(lost)->broker(base::BrokerId(lost))->sessions.at("main"), before);
    EXPECT_FALSE(at(lost).controller().reigning());
    const auto more = create("more", 3);
    await_served(more, 3);
    EXPECT_EQ(led_by(lost, more).size(), 1U);
}

TEST_F(NodeClusterTest, ControllerWithoutAVolumeLetsOneReignThatHasIt) {
    start({1});
    has_extra_ = {2, 3};
    start({2, 3});
    await_living({1, 2, 3});
    ASSERT_EQ(reigning(), 1);
    const auto topic = create("orders", 8);
    await_served(topic, 8);
    const auto session = image(2)->broker(base::BrokerId(2))->sessions.at("extra");
    ASSERT_FALSE(led_by(2, topic).empty());
    vanish(2);
    await_served(topic, 8);
    EXPECT_EQ(reigning(), 3);
    EXPECT_FALSE(extra_.hold(session_path(base::BrokerId(2), session))) << "it is marked";
    await_living({1, 3});
}

TEST_F(NodeClusterTest, FencedBrokerComesBackUnderANewIncarnation) {
    start({1, 2, 3});
    await_living({1, 2, 3});
    const auto topic = create("orders", 6);
    await_served(topic, 6);
    for (const int id : {follower(), reigning()}) {
        const auto session = image(id)->broker(base::BrokerId(id))->sessions.at("main");
        const int partition = led_by(id, topic).front();
        ASSERT_TRUE(mark_session(volume_, base::BrokerId(id), session));
        EXPECT_FALSE(append(id, topic, partition)) << "its next check sees it";
        await(
            [&] {
                const auto now = image(id);
                const auto* broker = now->broker(base::BrokerId(id));
                return broker->living() && broker->sessions.at("main") != session;
            },
            "a new incarnation");
        await_served(topic, 6);
        await_living({1, 2, 3});
    }
}

TEST_F(NodeClusterTest, KilledBrokersNextLifeTakesItsPlace) {
    start({1, 2});
    await_living({1, 2});
    const auto topic = create("orders", 4);
    await_served(topic, 4);
    const int killed = follower();
    const auto session = image(killed)->broker(base::BrokerId(killed))->sessions.at("main");
    // Its old life goes on unseen, and must not matter.
    network_.kill(port_of(killed));
    auto old = std::move(nodes_.at(killed));
    nodes_.erase(killed);
    auto next = std::async(std::launch::async, [&] { return make(killed); });
    nodes_[killed] = next.get();
    ASSERT_NE(nodes_[killed], nullptr);
    await_served(topic, 4);
    EXPECT_NE(image(killed)->broker(base::BrokerId(killed))->sessions.at("main"), session);
    EXPECT_FALSE(volume_.hold(session_path(base::BrokerId(killed), session)));
    old->stop(1s);
}

TEST_F(NodeClusterTest, ControllerThatEndsHandsEverythingOver) {
    start({1, 2, 3});
    await_living({1, 2, 3});
    const auto topic = create("orders", 6);
    await_served(topic, 6);
    const int leaves = reigning();
    at(leaves).drain(20s);
    EXPECT_FALSE(at(leaves).controller().reigning()) << "the office goes first";
    EXPECT_EQ(at(leaves).partitions().serving(), 0U);
    end(leaves);
    await_served(topic, 6);
    await_dead(leaves);
    EXPECT_EQ(volume_.list("__sessions")->size(), 2U);
}

TEST_F(NodeClusterTest, BrokersEndOneByOneAndTheLastKeepsAll) {
    start({1, 2, 3});
    await_living({1, 2, 3});
    const auto topic = create("orders", 6);
    await_served(topic, 6);
    while (connected().size() > 1) {
        const int leaves = follower();
        at(leaves).drain(20s);
        end(leaves);
        await_dead(leaves);
        await_served(topic, 6);
    }
    end(connected().front());
    EXPECT_TRUE(volume_.list("__sessions")->empty());
    start({2, 3});
    await_served(topic, 6);
}

}  // namespace
}  // namespace kaas::cluster
