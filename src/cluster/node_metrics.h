#pragma once

#include "base/clock.h"
#include "base/metrics.h"
#include "cluster/partition_table.h"
#include "cluster/slot_table.h"
#include "storage/volume.h"

#include <chrono>
#include <string>

namespace kaas::cluster {

/// What a node tells about its membership (names: CONTRIBUTING). Sampled values are asked for on
/// the health thread and touch no volume: a hung one must not silence the metrics. Thread: any. The
/// registry outlives it; it takes its sampled series with it.
class NodeMetrics {
public:
    struct LateTransactions {
        const base::Clock* clock;
        /// How long a producer may be silent in an open transaction.
        std::chrono::milliseconds after;
    };
    /// `slots` may be null.
    NodeMetrics(base::metrics::Registry& registry, const PartitionTable& table,
                const SlotTable* slots, LateTransactions late);
    ~NodeMetrics();
    NodeMetrics(const NodeMetrics&) = delete;
    NodeMetrics& operator=(const NodeMetrics&) = delete;

    void set_space(const std::string& volume, const storage::Space& space);

    base::metrics::Gauge& is_controller;
    base::metrics::Counter& reigns;
    base::metrics::Histogram& reign_start;
    base::metrics::Counter& pushes;
    base::metrics::Counter& stale_pushes;
    base::metrics::Counter& fences;

private:
    base::metrics::Registry& registry_;
};

}  // namespace kaas::cluster
