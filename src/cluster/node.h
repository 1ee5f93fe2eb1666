#pragma once

#include "base/clock.h"
#include "base/executor.h"
#include "base/ids.h"
#include "base/metrics.h"
#include "catalog/image.h"
#include "catalog/model.h"
#include "cluster/away.h"
#include "cluster/controller.h"
#include "cluster/controller_address.h"
#include "cluster/error.h"
#include "cluster/partition_table.h"
#include "cluster/roll_call.h"
#include "cluster/slot_host.h"
#include "cluster/slot_table.h"
#include "cluster/survey.h"
#include "cluster/uplink.h"
#include "cluster/volume_witness.h"
#include "storage/log_config.h"
#include "storage/log_dir.h"
#include "storage/volume.h"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kaas::cluster {

struct NodeOptions {
    base::BrokerId id{1};
    /// At least one. They outlive the node.
    std::vector<NamedVolume> volumes;
    /// Has, or gets, the cluster's own files (`kaas.cluster.dir`); null: the volume that has them,
    /// in a new cluster the first.
    storage::Volume* cluster_volume = nullptr;
    /// As advertised, with real ports: listeners are bound before the node starts.
    std::vector<catalog::Endpoint> endpoints;
    std::optional<std::string> rack;
    /// The cluster that the volumes must belong to; absent: whichever they do, or a new one.
    std::optional<std::string> cluster_id;
    ControllerConfig controller;
    /// What a topic's configs say to its logs, over the broker's defaults.
    std::function<storage::LogConfig(const catalog::ConfigMap&)> log_config;
    UpkeepPace upkeep;
    /// The longest that a producer may be silent in a transaction (`transaction.max.timeout.ms`).
    std::chrono::milliseconds transaction_max_timeout{900'000};
    /// Who serves the coordinators' slots that are assigned here; outlives the node. Null: nobody,
    /// and they are not opened.
    SlotHost* slot_host = nullptr;
    /// Blocking work. Outlives the node's work on it: a log that was not released in time may still
    /// hang there after `Node::stop`, and whoever stopped the node ends the pool before it destroys
    /// it.
    base::Executor* io_pool = nullptr;
    base::Clock* clock = &base::Clock::system();
    /// For the commit cycles of each volume. Name, volume, session, owner, pool and clock are the
    /// node's.
    storage::LogDirOptions logs;
    /// Where the node's series are kept, and those of its commit cycles; outlives the node.
    base::metrics::Registry* metrics = nullptr;
    std::chrono::milliseconds beat_interval{1'000};
    /// Whether other processes use the same volumes; then `uplink` makes the way to the controller,
    /// when that is one of them, once the cluster's volume is known, and `probe` finds out whether
    /// a broker's process listens.
    Sharing sharing = Sharing::kAlone;
    std::function<Result<std::shared_ptr<Uplink>>(storage::Volume& cluster)> uplink;
    std::function<void(const catalog::Broker&, std::move_only_function<void(bool refused)>)> probe;
    std::chrono::milliseconds session_timeout{6'000};  ///< `broker.session.timeout.ms`
    std::chrono::milliseconds death_grace{300};        ///< `kaas.death.grace.ms`
    /// Volumes are proven before they are used, alone and together with the controller's broker
    /// (`kaas.volume.check`).
    bool check_volumes = false;
    /// Sees each image before reactors do. Called on the control thread, once while it starts.
    std::function<void(const catalog::ImagePtr&)> on_image = [](const catalog::ImagePtr&) {};
    /// The node cannot go on, because it was fenced where nobody else should be, or another process
    /// has its id: this one should say so and end. (A volume that fails is waited for.) Called at
    /// most once, on a thread of the node, which must not be stopped from it.
    std::function<void(const Error&)> on_lost = [](const Error&) {};
};

/// This process as a member of a cluster. Standalone is a cluster of one, with its directory locked
/// against a second start.
///
/// Start: look at the volumes (alone: lock them); find the controller, or win the election and read
/// the control log; open sessions on the volumes that are as the cluster knows them; register; open
/// what is assigned. From then on it follows whoever is the controller, stands for election when
/// that one is gone, and comes back as a new incarnation where its session was ended. Owns the
/// control thread, on which its controller runs while it reigns. Thread: any, but `start` and
/// `stop` block.
class Node {
public:
    /// Errors: kInUse (with the pid), kDuplicateBroker, kWrongCluster, kNewerFormat, kStorage.
    [[nodiscard]] static Result<std::unique_ptr<Node>> start(NodeOptions options);
    ~Node();

    [[nodiscard]] base::BrokerId id() const;
    [[nodiscard]] const std::string& cluster_id() const;
    [[nodiscard]] PartitionTable& partitions();
    /// Null without a host of slots.
    [[nodiscard]] const SlotTable* slots() const;
    /// Answers while this broker reigns; kNotController otherwise.
    [[nodiscard]] Controller& controller();
    /// What brokers of other processes say to the controller.
    [[nodiscard]] RollCall& roll_call();
    /// What brokers prove before they are on the list; null when nothing is checked.
    [[nodiscard]] std::shared_ptr<VolumeWitness> volume_witness();
    /// Where the controller of another process is, as far as this one knows.
    [[nodiscard]] std::optional<ControllerAddress> controller_elsewhere() const;

    /// Thread: any. Within a second of what it says.
    [[nodiscard]] std::shared_ptr<const Away> away() const;
    /// The same, for who asks with every request.
    [[nodiscard]] bool anything_away() const;

    /// A directory as DescribeLogDirs shows it.
    struct LogDirState {
        std::string name;
        std::string path;
        storage::Volume* volume = nullptr;  ///< null: missing, its partitions are offline
        bool cordoned = false;
        bool full = false;  ///< batches are refused there
    };
    /// In the order of their configuration, then those that are missing.
    [[nodiscard]] std::vector<LogDirState> log_dirs() const;
    /// Fixed at the start.
    [[nodiscard]] const std::vector<MissingVolume>& missing_volumes() const;
    /// True while a commit cycle waits for its volume for too long (`LogDirOptions::stall_after`).
    [[nodiscard]] bool storage_stalled() const;

    /// The first part of a stop, while clients are still served. Among others: the office goes to
    /// another broker, and slots and partitions, a few at a time, so that each is away only for its
    /// own hand-over. Alone: hands back the slots, so that nobody waits for a rebalance that will
    /// not end here. Thread: one that may block.
    void drain(std::chrono::milliseconds patience);
    /// Releases every slot, then every partition, then the reign, then the sessions: the next start
    /// has nothing to recover. What takes longer than `patience` is left as a crash would leave it;
    /// but a volume that hangs holds up the end of the reign and of its session for as long as it
    /// hangs. New requests must have stopped coming. May be called twice.
    void stop(std::chrono::milliseconds patience);

private:
    class Impl;
    explicit Node(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

}  // namespace kaas::cluster
