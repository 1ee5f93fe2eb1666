#pragma once

#include "base/ids.h"
#include "base/thread_pool.h"
#include "broker.h"
#include "catalog/image.h"
#include "cluster/node.h"
#include "ledger.h"
#include "machine.h"
#include "network.h"
#include "shared_disk.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kaas::simulation {

/// The history of one cluster, from a seed: brokers that start, die, freeze, lose their sessions,
/// their hosts and each other; clients that write, read and ask for topics meanwhile. Then nothing
/// goes wrong any more, and all must be well.
class History {
public:
    explicit History(std::uint64_t seed);

    /// What went wrong; empty when nothing did.
    [[nodiscard]] std::optional<std::string> run();
    [[nodiscard]] const Ledger& ledger() const { return ledger_; }
    [[nodiscard]] std::size_t faults() const { return faults_; }

private:
    // Brokers.
    void supervise(int id);
    [[nodiscard]] BrokerLife* running(int id) const;
    [[nodiscard]] BrokerLife* some_running() const;

    // Clients, each a thread of nobody's.
    void produce(int client);
    void produce_one(const std::string& value);
    /// True when it was acknowledged.
    bool append(BrokerLife& leader, const base::TopicPartition& id, const std::string& value,
                bool durable);
    void consume();
    void change_slots(int client);
    void administrate();
    void create(BrokerLife& broker, const std::string& name);
    void remove(BrokerLife& broker, const std::string& name);
    void ask_for_producer_ids(BrokerLife& broker);
    void move_leaders(BrokerLife& broker, const catalog::Image& image);
    /// True when it was read.
    bool read_whole(BrokerLife& broker, const base::TopicPartition& id);
    /// Waits until `answered`, or for as long as a client has patience.
    void await_answer(const std::shared_ptr<bool>& answered);
    [[nodiscard]] std::optional<base::TopicPartition> some_partition(
        const catalog::Image& image) const;

    // What goes wrong.
    void harm();
    void do_harm();
    void freeze(BrokerLife& broker, Nanos time);
    void lose_power();
    void let_power_follow();
    void set_trap(int id);
    void in_trap(int id, const Process& caller);
    void kill_all(int id);
    void write_back(int id);
    void mark_some_session(BrokerLife& broker);

    // The end.
    [[nodiscard]] bool all_is_well();
    [[nodiscard]] bool all_agree(cluster::Node& reigning);
    [[nodiscard]] bool all_is_served(const catalog::Image& image);
    [[nodiscard]] std::string what_is_wrong();
    void check_all();
    [[nodiscard]] bool use(const base::TopicPartition& id);

    Machine& machine_;
    ClusterSettings settings_;
    Process outside_{"outside"};
    std::unique_ptr<SharedDisk> disk_;
    Network network_;
    Ledger ledger_;
    std::vector<std::vector<std::unique_ptr<BrokerLife>>> lives_;
    bool calm_ = false;
    std::size_t faults_ = 0;
    std::uint64_t values_ = 0;
    std::string wrong_;
};

}  // namespace kaas::simulation
