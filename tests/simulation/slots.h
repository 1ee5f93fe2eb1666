#pragma once

#include "base/executor.h"
#include "base/ids.h"
#include "base/mutex.h"
#include "cluster/slot_host.h"
#include "ledger.h"
#include "storage/error.h"
#include "storage/slot_log.h"

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace kaas::simulation {

/// A coordinator whose slots are lists of texts: what a process does with the slots it leads.
class ListKeeper final : public cluster::SlotHost {
public:
    ListKeeper(Ledger& ledger, base::Executor& home, std::string process)
        : ledger_(ledger), home_(home), process_(std::move(process)) {}

    void open(const cluster::SlotId& id, storage::OpenedSlot slot, Served served) override
        KAAS_EXCLUDES(mutex_);
    void close(const cluster::SlotId& id, std::move_only_function<void()> closed) override
        KAAS_EXCLUDES(mutex_);
    /// Adds to a slot that is served here. False when it is not; else `done` tells whether it
    /// stands.
    bool add(const cluster::SlotId& id, const std::string& text, std::function<void(bool)> done)
        KAAS_EXCLUDES(mutex_);
    /// What each slot holds that is served here, and under which epoch.
    [[nodiscard]] std::map<cluster::SlotId, std::pair<base::LeaderEpoch, std::vector<std::string>>>
    lists() KAAS_EXCLUDES(mutex_);

private:
    struct Slot {
        std::shared_ptr<storage::SlotLog> log;
        std::vector<std::string> list;
    };
    void serve(const cluster::SlotId& id, const std::shared_ptr<Slot>& slot) KAAS_EXCLUDES(mutex_);

    Ledger& ledger_;
    base::Executor& home_;
    const std::string process_;
    base::Mutex mutex_;
    std::map<cluster::SlotId, std::shared_ptr<Slot>> slots_ KAAS_GUARDED_BY(mutex_);
};

}  // namespace kaas::simulation
