#pragma once

#include "base/executor.h"
#include "base/ids.h"
#include "base/mutex.h"
#include "broker/controller_calls.h"
#include "cluster/admin.h"

#include <deque>
#include <functional>

namespace kaas::broker {

/// Gives out producer ids from blocks that the controller grants: each id once, ever (DESIGN 10).
/// Thread: any.
class ProducerIds {
public:
    /// Ids asked for at a time (Apache `ProducerIdsBlock.PRODUCER_ID_BLOCK_SIZE`).
    static constexpr std::int32_t kBlockSize = 1000;
    using Done = std::move_only_function<void(cluster::Result<base::ProducerId>)>;

    explicit ProducerIds(ControllerCalls& controller) : controller_(controller) {}

    /// `done` runs on `home`: at once if an id is at hand, otherwise when the controller has
    /// granted more.
    void next(base::Executor& home, Done done) KAAS_EXCLUDES(mutex_);

private:
    struct Waiter {
        base::Executor* home;
        Done done;
    };

    void ask_for_more(base::Executor& home);
    void granted(cluster::Result<cluster::ProducerIdBlock> block) KAAS_EXCLUDES(mutex_);

    ControllerCalls& controller_;
    base::Mutex mutex_;
    base::ProducerId next_ KAAS_GUARDED_BY(mutex_){0};
    base::ProducerId end_ KAAS_GUARDED_BY(mutex_){0};
    std::deque<Waiter> waiting_ KAAS_GUARDED_BY(mutex_);
};

}  // namespace kaas::broker
