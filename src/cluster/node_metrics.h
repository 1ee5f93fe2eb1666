#pragma once

#include "base/clock.h"
#include "base/metrics.h"
#include "base/mutex.h"
#include "catalog/change.h"
#include "catalog/image.h"
#include "cluster/partition_table.h"
#include "cluster/slot_table.h"
#include "storage/volume.h"

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

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
    /// A failover, by what it spends its time on.
    base::metrics::Histogram& detect;  ///< from a broker's last word to its end, by the controller
    base::metrics::Histogram& elect;  ///< from the loss of a controller to the next one's first act
    base::metrics::Histogram& recover;  ///< the opening of logs that came from others
    base::metrics::Histogram& serve;    ///< from an image to all that it gives being open
    base::metrics::Counter& stale_reports;
    base::metrics::Counter& stale_reigns;
    base::metrics::Counter& moves_begun;
    base::metrics::Counter& moves_done;

    /// Moves of leadership in a push of this process's controller; `before` is the image before it.
    void count_moves(const catalog::Image& before, const std::vector<catalog::Change>& changes);

private:
    /// What a walk over all partitions finds; made once an image, by who asks first.
    struct Tally {
        std::size_t without_leader = 0;
        std::size_t leaderships = 0;    ///< asked back, and not yet given up
        std::size_t reassignments = 0;  ///< replicas on their way to others
    };
    [[nodiscard]] Tally tally() KAAS_EXCLUDES(mutex_);

    base::metrics::Registry& registry_;
    const PartitionTable& table_;
    base::Mutex mutex_;
    catalog::ImageVersion tallied_ KAAS_GUARDED_BY(mutex_){};
    Tally tally_ KAAS_GUARDED_BY(mutex_);
};

}  // namespace kaas::cluster
