#include "network.h"

#include "base/executor.h"
#include "catalog/image.h"
#include "cluster/admin.h"
#include "cluster/controller_address.h"
#include "cluster/error.h"
#include "cluster/link_messages.h"
#include "cluster/roll_call.h"
#include "cluster/uplink.h"
#include "machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

namespace kaas::simulation {
namespace {

using std::chrono::milliseconds;

constexpr Nanos kLatency{400'000};
constexpr milliseconds kPause{20};
constexpr milliseconds kConnectTimeout{10'000};

cluster::LinkEnd end_of(cluster::ErrorCode code) {
    switch (code) {
        case cluster::ErrorCode::kStaleBroker:
        case cluster::ErrorCode::kStorage: return cluster::LinkEnd::kStale;
        case cluster::ErrorCode::kDuplicateBroker:
        case cluster::ErrorCode::kWrongCluster: return cluster::LinkEnd::kRefused;
        default: return cluster::LinkEnd::kNotController;
    }
}

}  // namespace

Reactor::Reactor(Process& process) : process_(process) {
    Machine::get().spawn(process, "reactor", [this] { run(); });
}

void Reactor::post_at(Nanos at, Work work) {
    if (!process_.alive) return;
    queue_.emplace(std::pair(at, order_++), std::move(work));
    Machine::get().wake(this, false);
}

void Reactor::run() {
    auto& machine = Machine::get();
    while (true) {
        if (queue_.empty()) {
            machine.wait(this);
        } else if (queue_.begin()->first.first > machine.now()) {
            machine.wait(this, queue_.begin()->first.first);
        } else {
            auto work = std::move(queue_.extract(queue_.begin()).mapped());
            work();
        }
    }
}

void Reactor::run_and_wait(const std::function<void()>& work) {
    bool done = false;
    post([&] {
        work();
        done = true;
        Machine::get().wake(&done, true);
    });
    while (!done) Machine::get().wait(&done);
}

void Network::bind(int broker, Reactor& reactor) { listeners_[broker] = {.reactor = &reactor}; }

void Network::serve(int broker, const Reactor& reactor, cluster::RollCall& roll_call) {
    auto& listener = listeners_.at(broker);
    if (listener.reactor != &reactor) return;  // a later life has the address
    listener.roll_call = &roll_call;
    for (auto& work : std::exchange(listener.waiting, {})) {
        post_to_server(listener.reactor, broker, Machine::get().now(), std::move(work));
    }
}

void Network::post_to_server(Reactor* server, int broker, Nanos at,
                             std::move_only_function<void(cluster::RollCall&)> work) {
    server->post_at(at, [this, server, broker, work = std::move(work)]() mutable {
        auto& listener = listeners_[broker];
        if (listener.reactor != server) return;
        if (listener.roll_call != nullptr) return work(*listener.roll_call);
        listener.waiting.push_back(std::move(work));
    });
}

void Network::close(int broker, const Reactor& reactor, bool kernel_tells) {
    auto& listener = listeners_[broker];
    if (listener.reactor == &reactor) listener = {.host_is_up = kernel_tells};
    if (kernel_tells) return break_all(reactor);
    std::erase_if(open_, [&](const auto& one) {
        auto& connection = *one.second.connection;
        if (connection.client != &reactor && connection.server != &reactor) return false;
        connection.open = false;  // and nobody hears of it
        return true;
    });
}

void Network::break_all(const Reactor& reactor) {
    std::vector<std::uint64_t> ended;
    for (const auto& [id, one] : open_) {
        if (one.connection->client == &reactor || one.connection->server == &reactor) {
            ended.push_back(id);
        }
    }
    for (const auto id : ended) break_one(id);
}

Network::Found Network::look(int from, int to) const {
    const auto now = Machine::get().now();
    for (const auto& way : {std::pair(from, to), std::pair(to, from)}) {
        const auto cut = cut_.find(way);
        if (cut != cut_.end() && cut->second > now) return Found::kNoWay;
    }
    const auto found = listeners_.find(to);
    if (found == listeners_.end()) return Found::kRefused;
    if (!found->second.host_is_up) return Found::kNoWay;
    return found->second.reactor == nullptr ? Found::kRefused : Found::kListens;
}

std::shared_ptr<Connection> Network::connect(int from, Reactor& client, int to,
                                             std::function<void()> on_break) {
    auto made = std::make_shared<Connection>();
    made->id = ++last_id_;
    made->from = from;
    made->to = to;
    made->client = &client;
    made->server = listeners_.at(to).reactor;
    open_[made->id] = {made, std::move(on_break)};
    return made;
}

Nanos Network::arrival(int from, int to, Nanos& last) const {
    auto& machine = Machine::get();
    auto at = machine.now() + machine.some_time(kLatency);
    const auto cut = cut_.find({from, to});
    if (cut != cut_.end()) at = std::max(at, cut->second + machine.some_time(kLatency));
    return last = std::max(at, last + Nanos(1));
}

void Network::tell_server(const Connection& connection) {
    auto& machine = Machine::get();
    post_to_server(
        connection.server, connection.to, machine.now() + machine.some_time(kLatency),
        [id = connection.id](cluster::RollCall& roll_call) { roll_call.disconnected(id); });
}

void Network::hang_up(const std::shared_ptr<Connection>& connection) {
    if (!connection || !std::exchange(connection->open, false)) return;
    open_.erase(connection->id);
    if (look(connection->from, connection->to) == Found::kListens) {
        tell_server(*connection);
    }
}

void Network::break_one(std::uint64_t id) {
    auto node = open_.extract(id);
    auto& machine = Machine::get();
    auto& [connection, on_break] = node.mapped();
    connection->open = false;
    connection->client->post_at(machine.now() + machine.some_time(kLatency), std::move(on_break));
    tell_server(*connection);
}

void Network::break_some(int broker) {
    std::vector<std::uint64_t> chosen;
    for (const auto& [id, one] : open_) {
        const bool of_it = one.connection->from == broker || one.connection->to == broker;
        if (of_it && Machine::get().chance(2)) chosen.push_back(id);
    }
    for (const auto id : chosen) break_one(id);
}

void Network::send(const std::shared_ptr<Connection>& connection,
                   std::move_only_function<void(cluster::RollCall&)> work) {
    if (!connection->open) return;
    // What is on its way when the connection breaks may still arrive.
    const bool arrives_late = Machine::get().chance(2);
    post_to_server(
        connection->server, connection->to,
        arrival(connection->from, connection->to, connection->last_there),
        [connection, arrives_late, work = std::move(work)](cluster::RollCall& roll_call) mutable {
            if (connection->open || arrives_late) work(roll_call);
        });
}

void Network::answer(const std::shared_ptr<Connection>& connection, base::Executor::Work work) {
    connection->client->post_at(arrival(connection->to, connection->from, connection->last_back),
                                [connection, work = std::move(work)]() mutable {
                                    if (connection->open) work();
                                });
}

// The uplink.

template <class T>
void SimulatedUplink::call(
    const std::shared_ptr<Channel>& channel, milliseconds patience,
    std::move_only_function<void(cluster::RollCall&, cluster::LinkId, cluster::Reply<T>)> ask,
    Answered<T> done) {
    auto& machine = Machine::get();
    const auto id = ++channel->last_call;
    auto shared = std::make_shared<Answered<T>>(std::move(done));
    channel->open[id] = [shared](Fault fault) { (*shared)(std::unexpected(fault)); };
    const auto fail_later = [&](Nanos after, Fault fault) {
        reactor_.post_at(machine.now() + after, [this, weak = std::weak_ptr(channel), id, fault] {
            const auto still = weak.lock();
            if (!still || !still->open.contains(id)) return;
            // A call that timed out costs the connection, and those beside it end too.
            auto node = still->open.extract(id);
            network_.hang_up(std::exchange(still->connection, nullptr));
            node.mapped()(fault);
            fail_all(still, Fault::kDown);
        });
    };
    if (!channel->connection || !channel->connection->open) {
        switch (network_.look(broker_, to_)) {
            case Network::Found::kRefused:
                return fail_later(machine.some_time(kLatency), Fault::kRefused);
            case Network::Found::kNoWay:
                return fail_later(std::min<Nanos>(kConnectTimeout, patience), Fault::kTimedOut);
            case Network::Found::kListens: break;
        }
        channel->connection =
            network_.connect(broker_, reactor_, to_, [this, weak = std::weak_ptr(channel)] {
                const auto still = weak.lock();
                if (!still) return;
                still->connection.reset();
                changed();
                fail_all(still, Fault::kDown);
            });
    }
    fail_later(patience, Fault::kTimedOut);
    auto connection = channel->connection;
    network_.send(
        connection, [network = &network_, connection, shared, id, weak = std::weak_ptr(channel),
                     ask = std::move(ask)](cluster::RollCall& roll_call) mutable {
            static base::InlineExecutor here;
            ask(roll_call, connection->id,
                {&here, [network, connection, shared, id, weak](cluster::Result<T> result) {
                     network->answer(connection,
                                     [shared, id, weak, result = std::move(result)]() mutable {
                                         const auto still = weak.lock();
                                         if (!still || still->open.erase(id) == 0) return;
                                         (*shared)(std::move(result));
                                     });
                 }});
        });
}

void SimulatedUplink::fail_all(const std::shared_ptr<Channel>& channel, Fault fault) {
    for (auto& [id, failed] : std::exchange(channel->open, {})) failed(fault);
}

void SimulatedUplink::changed() {
    if (registered_) beat();  // refused, if the process is gone
}

void SimulatedUplink::drop() {
    ++following_;
    ++beats_;
    registered_ = false;
    beating_ = false;
    heard_ = false;
    for (auto* channel : {&reports_, &news_}) {
        network_.hang_up((*channel)->connection);
        *channel = std::make_shared<Channel>();
    }
    pending_.add(std::exchange(under_way_, {}));
    pending_.applied.clear();
}

void SimulatedUplink::follow(const cluster::ControllerAddress& address,
                             cluster::Registration registration) {
    reactor_.post([self = shared_from_this(), to = static_cast<int>(address.port),
                   registration = std::move(registration)]() mutable {
        self->drop();
        note(fmt::format("turns to the controller at b{}", to));
        self->to_ = to;
        self->life_ = registration.life;
        self->call<std::monostate>(
            self->reports_, self->timeout_,
            [registration = std::move(registration)](auto& roll_call, auto link,
                                                     auto reply) mutable {
                roll_call.register_broker(link, std::move(registration), std::move(reply));
            },
            [self, following = self->following_](auto answer) {
                if (following != self->following_) return;
                if (!answer) {
                    return self->end(answer.error() == Fault::kRefused ? cluster::LinkEnd::kGone
                                                                       : cluster::LinkEnd::kSilent,
                                     {cluster::ErrorCode::kNotController, "no connection"});
                }
                if (!*answer) return self->end(end_of(answer->error().code), answer->error());
                note("is registered");
                self->registered_ = true;
                self->answered_ = Machine::get().now();
                self->listener_.on_registered();
                self->beat();
            });
    });
}

void SimulatedUplink::watch(catalog::ImageVersion have) {
    reactor_.post([self = shared_from_this(), have] { self->watch_here(have); });
}

void SimulatedUplink::watch_here(catalog::ImageVersion have) {
    if (!registered_) return;
    auto self = shared_from_this();
    call<cluster::News>(
        news_, std::chrono::hours(24),
        [life = life_, have](auto& roll_call, auto link, auto reply) {
            roll_call.watch(link, life, have, std::move(reply));
        },
        [self, have, following = following_](auto answer) {
            if (following != self->following_ || !self->registered_) return;
            if (!answer) {
                return self->reactor_.post_at(Machine::get().now() + kPause,
                                              [self, have, following] {
                                                  if (following == self->following_)
                                                      self->watch_here(have);
                                              });
            }
            if (!*answer) return self->end(end_of(answer->error().code), answer->error());
            // As text, which is what it is on its way.
            auto news = cluster::parse_news(cluster::to_text(**answer));
            if (!news) return self->end(cluster::LinkEnd::kSilent, news.error());
            self->listener_.on_news(std::move(*news));
        });
}

void SimulatedUplink::report(cluster::Report report) {
    reactor_.post([self = shared_from_this(), report = std::move(report)]() mutable {
        report.add(std::move(self->pending_));
        self->pending_ = std::move(report);
        self->heard_ = false;
        self->beat();
    });
}

void SimulatedUplink::beat() {
    if (!registered_ || beating_) return;
    beating_ = true;
    ++beats_;
    const auto intent = pending_.intent;
    under_way_ = std::exchange(pending_, {});
    pending_.intent = intent;
    auto self = shared_from_this();
    call<std::monostate>(
        reports_, timeout_,
        [life = life_, report = under_way_](auto& roll_call, auto link, auto reply) {
            roll_call.report(link, life, report, std::move(reply));
        },
        [self, following = following_](auto answer) {
            if (following != self->following_) return;
            self->beating_ = false;
            if (!answer) return self->not_answered(answer.error());
            if (!*answer) return self->end(end_of(answer->error().code), answer->error());
            self->answered_ = Machine::get().now();
            const bool told_all =
                self->pending_.empty() &&
                self->pending_.intent == std::exchange(self->under_way_, {}).intent;
            if (!told_all) return self->beat();
            self->heard_ = true;
            Machine::get().wake(&self->heard_, true);
            self->reactor_.post_at(Machine::get().now() + self->heartbeat_,
                                   [self, beat = self->beats_] {
                                       if (beat == self->beats_) self->beat();
                                   });
        });
}

void SimulatedUplink::not_answered(Fault fault) {
    pending_.add(std::exchange(under_way_, {}));
    const bool again = fault == Fault::kDown && Machine::get().now() - answered_ < timeout_;
    if (!again) {
        return end(fault == Fault::kRefused ? cluster::LinkEnd::kGone : cluster::LinkEnd::kSilent,
                   {cluster::ErrorCode::kNotController, "no answer"});
    }
    reactor_.post_at(Machine::get().now() + kPause, [self = shared_from_this(), beat = beats_] {
        if (beat == self->beats_) self->beat();
    });
}

void SimulatedUplink::end(cluster::LinkEnd how, cluster::Error why) {
    note(fmt::format("loses the controller at b{}, {}: {}", to_, static_cast<int>(how),
                     why.context));
    drop();
    listener_.on_end(how, std::move(why));
}

bool SimulatedUplink::flush(milliseconds patience) {
    auto& machine = Machine::get();
    const auto until = machine.now() + patience;
    reactor_.post([self = shared_from_this()] {
        if (self->heard_) return Machine::get().wake(&self->heard_, true);
        if (!self->beating_) self->beat();
    });
    bool heard = false;
    while (!heard && machine.now() < until) {
        machine.wait(&heard_, until);
        heard = heard_;
    }
    return heard;
}

void SimulatedUplink::end_for_good() {
    reactor_.run_and_wait([this] {
        drop();
        listener_ = {};
    });
}

cluster::Report SimulatedUplink::take_back() {
    cluster::Report unheard;
    reactor_.run_and_wait([&] {
        drop();
        unheard = std::exchange(pending_, {.intent = pending_.intent});
    });
    return unheard;
}

void SimulatedUplink::forget() {
    reactor_.post([self = shared_from_this()] { self->drop(); });
}

}  // namespace kaas::simulation
