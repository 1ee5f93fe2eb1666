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
#include "cluster/uplink.h"
#include "storage/log_config.h"
#include "storage/memory_volume.h"
#include "storage/partition_log.h"
#include "storage/testing_log.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <expected>
#include <functional>
#include <future>
#include <map>
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

using namespace std::chrono_literals;

constexpr auto kPatience = 30s;

class Network;

/// A broker's way to controllers over the network below. All of it runs on the network's thread.
class TestUplink final : public Uplink, public std::enable_shared_from_this<TestUplink> {
public:
    TestUplink(Network& network, std::uint16_t own_port) : network_(network), own_port_(own_port) {}

    void listen(Listener listener) override { listener_ = std::move(listener); }
    void follow(const ControllerAddress& address, Registration registration) override;
    void watch(catalog::ImageVersion have) override;
    void report(Report report) override;
    bool flush(std::chrono::milliseconds patience) override;
    void forget() override;
    /// The network took the connection away.
    void end(LinkEnd how);

    /// Its process has lost its port, for ever.
    void lose_port() { own_port_ = 0; }
    [[nodiscard]] std::uint16_t own_port() const { return own_port_; }

private:
    void drop();
    void send();
    void check(const Error& why);

    Network& network_;
    std::uint16_t own_port_;
    Listener listener_;
    std::uint64_t following_ = 0;
    LinkId link_ = 0;
    std::uint16_t port_ = 0;
    BrokerLife life_{};
    bool registered_ = false;
    bool sending_ = false;
    Report pending_;
    Report under_way_;
    std::vector<std::shared_ptr<std::promise<void>>> flushed_;
};

/// Who listens at which port, and who is connected to whom.
class Network {
public:
    ~Network() { thread_.stop(); }

    base::Executor& thread() { return thread_; }
    void run(base::Executor::Work work) { thread_.post(std::move(work)); }
    void run_and_wait(const std::function<void()>& work) {
        std::promise<void> done;
        thread_.post([&] {
            work();
            done.set_value();
        });
        done.get_future().wait();
    }
    std::shared_ptr<Uplink> uplink(std::uint16_t port) {
        auto made = std::make_shared<TestUplink>(*this, port);
        run_and_wait([&] { uplinks_.push_back(made); });
        return made;
    }

    /// Connections are taken from now on, and wait for `serve`.
    void bind(std::uint16_t port) {
        run_and_wait([&] { hosts_[port] = {}; });
    }
    void serve(std::uint16_t port, RollCall& roll_call) {
        run_and_wait([&] {
            auto& host = hosts_[port];
            host.roll_call = &roll_call;
            for (auto& work : std::exchange(host.waiting, {})) work(roll_call);
        });
    }
    /// Nobody listens there any more.
    void close(std::uint16_t port) {
        run_and_wait([&] {
            hosts_[port] = {.gone = true};
            hang_up(port, LinkEnd::kGone);
        });
    }
    /// As above, and whoever listened there reaches nobody.
    void kill(std::uint16_t port) {
        cut(port);
        run_and_wait([&] {
            for (const auto& uplink : uplinks()) {
                if (uplink->own_port() == port) uplink->lose_port();
            }
            hosts_[port] = {.gone = true};
            cut_.erase(port);
        });
    }
    /// Neither reaches anybody, nor is reached: for others its process is gone.
    void cut(std::uint16_t port) {
        run_and_wait([&] {
            cut_.insert(port);
            hang_up(port, LinkEnd::kGone);
            for (const auto& uplink : uplinks()) {
                if (uplink->own_port() == port) uplink->end(LinkEnd::kSilent);
            }
        });
    }
    void mend(std::uint16_t port) {
        run_and_wait([&] { cut_.erase(port); });
    }

    // On the thread.
    using Work = std::move_only_function<void(RollCall&)>;
    /// What the caller at `from` finds at `to`; `work` is done now, or when it serves.
    std::optional<LinkEnd> call(std::uint16_t from, std::uint16_t to, Work work) {
        if (cut_.contains(from)) return LinkEnd::kSilent;
        auto& host = hosts_[to];
        if (cut_.contains(to) || host.gone) return LinkEnd::kGone;
        if (host.roll_call == nullptr) {
            host.waiting.push_back(std::move(work));
        } else {
            work(*host.roll_call);
        }
        return std::nullopt;
    }
    bool is_refused(std::uint16_t port) { return cut_.contains(port) || hosts_[port].gone; }
    LinkId connect(std::uint16_t from, std::uint16_t to) {
        links_[++last_link_] = {from, to};
        return last_link_;
    }
    void disconnect(LinkId link) {
        auto found = links_.find(link);
        if (found == links_.end()) return;
        const auto to = hosts_.find(found->second.second);
        if (to != hosts_.end() && to->second.roll_call != nullptr) {
            to->second.roll_call->disconnected(link);
        }
        links_.erase(found);
    }
    /// Where links from or to `port` end.
    [[nodiscard]] bool is_open(LinkId link) const { return links_.contains(link); }

private:
    struct Host {
        RollCall* roll_call = nullptr;
        bool gone = false;
        std::vector<Work> waiting{};
    };
    std::vector<std::shared_ptr<TestUplink>> uplinks() {
        std::vector<std::shared_ptr<TestUplink>> all;
        for (auto& one : uplinks_) {
            if (auto uplink = one.lock()) all.push_back(std::move(uplink));
        }
        return all;
    }
    void hang_up(std::uint16_t port, LinkEnd how) {
        std::set<std::uint16_t> callers;
        std::vector<LinkId> dead;
        for (const auto& [link, ends] : links_) {
            if (ends.second == port) callers.insert(ends.first);
            if (ends.first == port || ends.second == port) dead.push_back(link);
        }
        for (const auto link : dead) disconnect(link);
        for (const auto& uplink : uplinks()) {
            if (callers.contains(uplink->own_port())) uplink->end(how);
        }
    }

    std::map<std::uint16_t, Host> hosts_;
    std::set<std::uint16_t> cut_{0};
    std::map<LinkId, std::pair<std::uint16_t, std::uint16_t>> links_;
    LinkId last_link_ = 0;
    std::vector<std::weak_ptr<TestUplink>> uplinks_;
    base::ThreadPool thread_{"network", 1};
};

LinkEnd end_of(ErrorCode code) {
    if (code == ErrorCode::kStaleBroker || code == ErrorCode::kStorage) return LinkEnd::kStale;
    if (code == ErrorCode::kDuplicateBroker || code == ErrorCode::kWrongCluster) {
        return LinkEnd::kRefused;
    }
    return LinkEnd::kNotController;
}

void TestUplink::follow(const ControllerAddress& address, Registration registration) {
    network_.run([self = shared_from_this(), port = address.port,
                  registration = std::move(registration)]() mutable {
        self->drop();
        self->port_ = port;
        self->life_ = registration.life;
        self->link_ = self->network_.connect(self->own_port_, port);
        auto refused = self->network_.call(
            self->own_port_, port,
            [self, link = self->link_, following = self->following_,
             registration = std::move(registration)](RollCall& roll_call) mutable {
                roll_call.register_broker(
                    link, std::move(registration),
                    {&self->network_.thread(), [self, following](Result<std::monostate> outcome) {
                         if (following != self->following_) return;
                         if (!outcome) return self->check(outcome.error());
                         self->registered_ = true;
                         self->listener_.on_registered();
                         self->send();
                     }});
            });
        if (refused) self->end(*refused);
    });
}

void TestUplink::watch(catalog::ImageVersion have) {
    network_.run([self = shared_from_this(), have] {
        if (!self->registered_) return;
        auto refused = self->network_.call(
            self->own_port_, self->port_,
            [self, have, following = self->following_](RollCall& roll_call) {
                roll_call.watch(self->link_, self->life_, have,
                                {&self->network_.thread(), [self, following](Result<News> news) {
                                     if (following != self->following_) return;
                                     if (!news) return self->check(news.error());
                                     self->listener_.on_news(std::move(*news));
                                 }});
            });
        if (refused) self->end(*refused);
    });
}

void TestUplink::report(Report report) {
    network_.run([self = shared_from_this(), report = std::move(report)]() mutable {
        report.add(std::move(self->pending_));
        self->pending_ = std::move(report);
        self->send();
    });
}

void TestUplink::send() {
    if (!registered_ || sending_) return;
    sending_ = true;
    const auto intent = pending_.intent;
    under_way_ = std::exchange(pending_, {});
    pending_.intent = intent;
    auto refused =
        network_.call(own_port_, port_, [this, following = following_](RollCall& roll_call) {
            roll_call.report(link_, life_, under_way_,
                             {&network_.thread(), [self = shared_from_this(),
                                                   following](Result<std::monostate> outcome) {
                                  if (following != self->following_) return;
                                  self->sending_ = false;
                                  if (!outcome) return self->check(outcome.error());
                                  const auto told = std::exchange(self->under_way_, {}).intent;
                                  if (!self->pending_.empty() || self->pending_.intent != told) {
                                      return self->send();
                                  }
                                  for (auto& one : std::exchange(self->flushed_, {}))
                                      one->set_value();
                              }});
        });
    if (refused) end(*refused);
}

bool TestUplink::flush(std::chrono::milliseconds patience) {
    auto done = std::make_shared<std::promise<void>>();
    auto heard = done->get_future();
    network_.run([self = shared_from_this(), done] {
        self->flushed_.push_back(done);
        self->send();
    });
    return heard.wait_for(patience) == std::future_status::ready;
}

void TestUplink::forget() {
    network_.run([self = shared_from_this()] { self->drop(); });
}

void TestUplink::drop() {
    ++following_;
    registered_ = false;
    sending_ = false;
    network_.disconnect(std::exchange(link_, 0));
    pending_.add(std::exchange(under_way_, {}));
    pending_.applied.clear();
}

void TestUplink::check(const Error& why) {
    drop();
    listener_.on_end(end_of(why.code), why);
}

void TestUplink::end(LinkEnd how) {
    drop();
    listener_.on_end(how, {ErrorCode::kNotController, "the network ended it"});
}

class NodeClusterTest : public ::testing::Test {
protected:
    ~NodeClusterTest() override {
        for (auto& [id, node] : nodes_) end(id, node);
    }

    static std::uint16_t port_of(int id) { return static_cast<std::uint16_t>(9000 + id); }

    NodeOptions options(int id) {
        NodeOptions options;
        options.id = base::BrokerId(id);
        options.volumes = {{"main", &volume_}};
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
        const auto* known = image(ids.front())->topic(topic);
        if (known == nullptr) return 0;
        for (std::size_t i = 0; i < known->partitions.size(); ++i) {
            const base::PartitionId partition(static_cast<std::int32_t>(i));
            int serving = 0;
            for (const int id : ids) {
                const auto* there = image(id)->topic(topic);
                if (there == nullptr || there->partitions.size() <= i) return 0;
                if (there->partitions[i].leader != known->partitions[i].leader) return 0;
                auto reader = at(id).partitions().reader();
                const bool serves = reader.find(topic, partition).state == Hosting::kServing;
                const bool leads = image(id)->leader(there->partitions[i]) == base::BrokerId(id);
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

}  // namespace
}  // namespace kaas::cluster
