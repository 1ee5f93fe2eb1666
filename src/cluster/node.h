#pragma once

#include "base/clock.h"
#include "base/executor.h"
#include "base/ids.h"
#include "base/metrics.h"
#include "catalog/image.h"
#include "catalog/model.h"
#include "cluster/controller.h"
#include "cluster/error.h"
#include "cluster/partition_table.h"
#include "cluster/slot_host.h"
#include "cluster/slot_table.h"
#include "cluster/survey.h"
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
    /// Blocking work; outlives the node.
    base::Executor* io_pool = nullptr;
    base::Clock* clock = &base::Clock::system();
    /// For the commit cycles of each volume. Name, volume, session, owner, pool and clock are the
    /// node's.
    storage::LogDirOptions logs;
    /// Where the node's series are kept, and those of its commit cycles; outlives the node.
    base::metrics::Registry* metrics = nullptr;
    std::chrono::milliseconds beat_interval{1'000};
    /// Sees each image before reactors do. Called on the control thread, once while it starts.
    std::function<void(const catalog::ImagePtr&)> on_image = [](const catalog::ImagePtr&) {};
    /// The node cannot go on, because it was fenced: the process should say so and end. (A volume
    /// that fails is waited for.) Called at most once, on a thread of the node, which must not be
    /// stopped from it.
    std::function<void(const Error&)> on_lost = [](const Error&) {};
};

/// This process as a member of a cluster. Standalone is a cluster of one, with its directory locked
/// against a second start.
///
/// Start: look at the volumes; lock; win the election and read the control log; open sessions on
/// the volumes that are as the cluster knows them; register; open what is assigned. Owns the
/// control thread, on which the controller runs. Thread: any, but `start` and `stop` block.
class Node {
public:
    /// Errors: kInUse (with the pid), kWrongCluster, kNewerFormat, kStorage.
    [[nodiscard]] static Result<std::unique_ptr<Node>> start(NodeOptions options);
    ~Node();

    [[nodiscard]] base::BrokerId id() const;
    [[nodiscard]] const std::string& cluster_id() const;
    [[nodiscard]] PartitionTable& partitions();
    /// Null without a host of slots.
    [[nodiscard]] const SlotTable* slots() const;
    /// Administrative requests go here; among many brokers, to whoever is the controller.
    [[nodiscard]] Controller& controller();

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

    /// Releases every slot, then every partition, then the reign, then the sessions: the next start
    /// has nothing to recover. What takes longer than `patience` is left as a crash would leave it;
    /// but a volume that hangs holds up the end of the reign and of its session for as long as it
    /// hangs. New requests must have stopped coming. May be called twice.
    void stop(std::chrono::milliseconds patience);
    /// The first part of it, while clients are still served: hands back the slots, so that nobody
    /// waits for a rebalance that will not end here. Thread: one that may block.
    void release_slots(std::chrono::milliseconds patience);

private:
    class Impl;
    explicit Node(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

}  // namespace kaas::cluster
