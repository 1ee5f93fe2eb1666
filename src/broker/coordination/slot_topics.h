#pragma once

#include "base/clock.h"
#include "base/executor.h"
#include "base/mutex.h"
#include "broker/controller_calls.h"
#include "catalog/slot.h"
#include "cluster/admin.h"
#include "cluster/error.h"

#include <functional>
#include <map>
#include <vector>

namespace kaas::broker {

/// Has the topic of a coordinator's slots made when the coordinator is first looked for (Apache
/// `AutoTopicCreationManager`): one request to the controller, however many ask. Thread: any.
class SlotTopics {
public:
    SlotTopics(ControllerCalls& controller, const base::Clock& clock)
        : controller_(controller), clock_(clock) {}

    /// `done` runs once, on `home`: when every living broker serves its slots, or nobody waits for
    /// them any longer.
    using Done = std::move_only_function<void()>;
    void make(catalog::SlotKind kind, base::Executor& home, Done done) KAAS_EXCLUDES(mutex_);

private:
    struct Waiter {
        base::Executor* home;
        Done done;
    };

    void made(catalog::SlotKind kind,
              const cluster::Result<std::vector<cluster::CreatedTopic>>& outcome)
        KAAS_EXCLUDES(mutex_);

    ControllerCalls& controller_;
    const base::Clock& clock_;
    base::Mutex mutex_;
    std::map<catalog::SlotKind, std::vector<Waiter>> waiting_ KAAS_GUARDED_BY(mutex_);
};

}  // namespace kaas::broker
