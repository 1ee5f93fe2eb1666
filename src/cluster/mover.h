#pragma once

#include "base/clock.h"
#include "catalog/change.h"
#include "catalog/image.h"
#include "cluster/admin.h"
#include "cluster/draft.h"
#include "cluster/moves.h"

#include <cstddef>
#include <deque>
#include <optional>
#include <set>

namespace kaas::cluster {

/// Moves leaderships during a reign: asks for a few epochs back at a time, and for the next when
/// those have been released, which `Controller` hears and hands on.
///
/// Keeps no more than a plan: what is under way, and where to, stands in the image, and the plan is
/// made anew from it by the next controller. Evens out when brokers have come, gives targets their
/// leaders, and now and then brings partitions back to their preferred leaders.
/// Thread: the controller's.
class Mover {
public:
    explicit Mover(BalanceConfig config) : config_(config) {}

    /// A reign begins. Its first plan waits a little: such a reign often begins because a broker
    /// has died, which still looks alive.
    void begin(base::Clock::Steady now);
    /// Brokers have come: everything is to be even again.
    void plan_now() { plan_at_ = base::Clock::Steady::min(); }
    /// Partitions have got targets. Nothing else moves for that: who reassigns has his reasons.
    void look_for_targets() { look_for_targets_ = true; }

    /// Adds what is to be asked back now.
    void step(Draft& draft, base::Clock::Steady now);
    /// When it wants to be called, whatever happens.
    [[nodiscard]] base::Clock::Steady due() const;

private:
    void plan(Draft& draft, base::Clock::Steady now);
    void forget_finished(const catalog::Image& image);

    const BalanceConfig config_;
    std::deque<Move> moves_;                       ///< not begun
    std::set<catalog::PartitionEpoch> under_way_;  ///< asked back, not yet released
    std::optional<base::Clock::Steady> plan_at_;
    bool evening_ = false;  ///< a plan for it is being carried out
    bool look_for_targets_ = false;
    base::Clock::Steady repair_at_ = base::Clock::Steady::max();
};

}  // namespace kaas::cluster
