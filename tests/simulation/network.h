#pragma once

#include "base/executor.h"
#include "cluster/controller_address.h"
#include "cluster/error.h"
#include "cluster/link_messages.h"
#include "cluster/roll_call.h"
#include "cluster/uplink.h"
#include "machine.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <expected>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace kaas::simulation {

/// A thread of a process that runs what is posted, at its time, in order.
class Reactor final : public base::Executor {
public:
    explicit Reactor(Process& process);

    void post(Work work) override { post_at(Machine::get().now(), std::move(work)); }
    void post_at(Nanos at, Work work);
    /// From another thread of the process.
    void run_and_wait(const std::function<void()>& work);
    [[nodiscard]] Process& process() const { return process_; }

private:
    void run();

    Process& process_;
    std::map<std::pair<Nanos, std::uint64_t>, Work> queue_;
    std::uint64_t order_ = 0;
};

/// A connection between two processes, as both ends see it.
struct Connection {
    std::uint64_t id = 0;
    int from = 0;
    int to = 0;
    Reactor* client = nullptr;
    Reactor* server = nullptr;
    bool open = true;
    Nanos last_there{0};  ///< nothing overtakes
    Nanos last_back{0};
};

/// Who listens, who is connected to whom, and what of it is cut. A connection carries things in
/// order or breaks; what was on its way then arrives or does not.
class Network {
public:
    /// A process of `broker` takes connections from now on; they wait for `serve`.
    void bind(int broker, Reactor& reactor);
    void serve(int broker, const Reactor& reactor, cluster::RollCall& roll_call);
    /// The process ends, in whatever way; its kernel tells the peers, if it still can.
    void close(int broker, const Reactor& reactor, bool kernel_tells);

    /// What `from` sends to `to` does not arrive until then.
    void cut(int from, int to, Nanos until) { cut_[{from, to}] = until; }
    /// Some connections of it break.
    void break_some(int broker);
    void break_all(const Reactor& reactor);
    /// Ends for good what is cut now.
    void heal() { cut_.clear(); }

    // For the ends.
    enum class Found { kListens, kRefused, kNoWay };
    [[nodiscard]] Found look(int from, int to) const;
    std::shared_ptr<Connection> connect(int from, Reactor& client, int to,
                                        std::function<void()> on_break);
    /// The client's end closes it.
    void hang_up(const std::shared_ptr<Connection>& connection);
    /// Runs `work` at the server, once it serves, unless the connection breaks before.
    void send(const std::shared_ptr<Connection>& connection,
              std::move_only_function<void(cluster::RollCall&)> work);
    /// Runs `work` at the client.
    void answer(const std::shared_ptr<Connection>& connection, base::Executor::Work work);

private:
    struct Listener {
        Reactor* reactor = nullptr;
        cluster::RollCall* roll_call = nullptr;
        std::vector<std::move_only_function<void(cluster::RollCall&)>> waiting{};
        bool host_is_up = true;
    };
    struct Open {
        std::shared_ptr<Connection> connection;
        std::function<void()> on_break;  ///< at the client
    };
    [[nodiscard]] Nanos arrival(int from, int to, Nanos& last) const;
    /// Runs `work` at the server's end, if it is the same process then.
    void post_to_server(Reactor* server, int broker, Nanos at,
                        std::move_only_function<void(cluster::RollCall&)> work);
    void tell_server(const Connection& connection);
    void break_one(std::uint64_t id);

    std::map<int, Listener> listeners_;
    std::map<std::pair<int, int>, Nanos> cut_;
    std::map<std::uint64_t, Open> open_;
    std::uint64_t last_id_ = 0;
};

/// A broker's way to controllers over that network: the rules of `ControllerLink`, message by
/// message. Thread: its process's reactor, but for what `Uplink` lets any thread call.
class SimulatedUplink final : public cluster::Uplink,
                              public std::enable_shared_from_this<SimulatedUplink> {
public:
    SimulatedUplink(Network& network, Reactor& reactor, int broker,
                    std::chrono::milliseconds heartbeat, std::chrono::milliseconds timeout)
        : network_(network),
          reactor_(reactor),
          broker_(broker),
          heartbeat_(heartbeat),
          timeout_(timeout) {}

    void listen(Listener listener) override { listener_ = std::move(listener); }
    void follow(const cluster::ControllerAddress& address,
                cluster::Registration registration) override;
    void watch(catalog::ImageVersion have) override;
    void report(cluster::Report report) override;
    bool flush(std::chrono::milliseconds patience) override;
    void forget() override;
    [[nodiscard]] cluster::Report take_back() override;
    /// Nothing more is told to the listener once this returns.
    void end_for_good();

private:
    enum class Fault { kRefused, kTimedOut, kDown };
    template <class T>
    using Answered = std::move_only_function<void(std::expected<cluster::Result<T>, Fault>)>;
    /// One connection at a time, opened when it is needed.
    struct Channel {
        std::shared_ptr<Connection> connection;
        std::uint64_t last_call = 0;
        std::map<std::uint64_t, std::move_only_function<void(Fault)>> open;
    };

    template <class T>
    void call(
        const std::shared_ptr<Channel>& channel, std::chrono::milliseconds patience,
        std::move_only_function<void(cluster::RollCall&, cluster::LinkId, cluster::Reply<T>)> ask,
        Answered<T> done);
    void fail_all(const std::shared_ptr<Channel>& channel, Fault fault);
    void changed();
    void drop();
    void watch_here(catalog::ImageVersion have);
    void beat();
    void not_answered(Fault fault);
    void end(cluster::LinkEnd how, cluster::Error why);

    Network& network_;
    Reactor& reactor_;
    const int broker_;
    const std::chrono::milliseconds heartbeat_;
    const std::chrono::milliseconds timeout_;
    Listener listener_;
    int to_ = 0;
    cluster::BrokerLife life_{};
    std::uint64_t following_ = 0;
    std::uint64_t beats_ = 0;
    bool registered_ = false;
    bool beating_ = false;
    bool heard_ = false;
    Nanos answered_{0};
    cluster::Report pending_;
    cluster::Report under_way_;
    std::shared_ptr<Channel> reports_ = std::make_shared<Channel>();
    std::shared_ptr<Channel> news_ = std::make_shared<Channel>();
};

}  // namespace kaas::simulation
