#pragma once

#include "base/clock.h"
#include "base/thread_pool.h"
#include "catalog/image.h"
#include "cluster/node.h"
#include "cluster/partition_table.h"
#include "ledger.h"
#include "machine.h"
#include "network.h"
#include "shared_disk.h"
#include "slots.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace kaas::simulation {

/// The clocks of a host: as fast as all others, and somewhere else.
class HostClock final : public base::Clock {
public:
    HostClock(Nanos ahead, std::int64_t wall_ahead_ms)
        : ahead_(ahead), wall_ahead_ms_(wall_ahead_ms) {}
    [[nodiscard]] Steady now() const override {
        return Steady(std::chrono::duration_cast<Steady::duration>(Machine::get().now() + ahead_));
    }
    [[nodiscard]] std::int64_t wall_ms() const override {
        const auto now = std::chrono::floor<std::chrono::milliseconds>(Machine::get().now());
        return 1'700'000'000'000 + now.count() + wall_ahead_ms_;
    }

private:
    const Nanos ahead_;
    const std::int64_t wall_ahead_ms_;
};

/// What all brokers of one history have in common.
struct ClusterSettings {
    int brokers = 3;
    std::int32_t slots = 3;
    bool journal = true;
    std::chrono::milliseconds session_timeout{6'000};
    std::chrono::milliseconds death_grace{300};
    std::int64_t flush_messages = 1;  ///< of topics whose name says so
};

/// One life of a broker: a process with a real `cluster::Node` in it, and a reactor beside it that
/// takes the requests of clients and of other brokers.
class BrokerLife {
public:
    /// Starts it; `Node::start` runs on its main thread.
    BrokerLife(int id, int life, const ClusterSettings& settings, SharedDisk& disk,
               Network& network, Ledger& ledger);

    Process process;
    const int id;

    [[nodiscard]] bool ended() const { return !process.alive; }
    /// Nothing while it starts.
    [[nodiscard]] cluster::Node* node() const { return process.alive ? node_.get() : nullptr; }
    [[nodiscard]] Reactor& reactor() { return *reactor_; }
    [[nodiscard]] base::ThreadPool& pool() { return *pool_; }
    [[nodiscard]] ListKeeper& keeper() { return *keeper_; }
    /// Asks it to end in good order.
    void stop();
    /// It is taken for dead, and another life is to be started, though it lives on.
    void lose_its_place();
    [[nodiscard]] bool superseded() const { return superseded_; }
    /// Its process ends here, and its host with it, if it loses its power.
    void kill(bool with_its_host);

private:
    void live();
    [[nodiscard]] cluster::NodeOptions options();
    void end();

    const ClusterSettings& settings_;
    SharedDisk& disk_;
    Network& network_;
    Ledger& ledger_;
    HostClock clock_;
    bool stopping_ = false;
    bool is_lost_ = false;
    bool superseded_ = false;
    catalog::ImageVersion last_image_;
    std::unique_ptr<Reactor> reactor_;
    std::unique_ptr<base::ThreadPool> pool_;
    std::unique_ptr<ListKeeper> keeper_;
    std::unique_ptr<cluster::Node> node_;
};

}  // namespace kaas::simulation
