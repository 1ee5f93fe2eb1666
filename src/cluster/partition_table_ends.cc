#include "base/clock.h"
#include "base/log.h"
#include "base/mutex.h"
#include "catalog/image.h"
#include "catalog/slot.h"
#include "cluster/drain_turn.h"
#include "cluster/hosted_partition.h"
#include "cluster/partition_table.h"
#include "cluster/partition_table_impl.h"
#include "cluster/place.h"
#include "cluster/table_view.h"
#include "cluster/tenancy.h"
#include "storage/error.h"
#include "storage/partition_log.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

/// How all partitions leave this broker, or one of its volumes.
namespace kaas::cluster {

// ---- another life on a volume -----------------------------------------------------------------

void PartitionTable::Impl::set_place(const std::string& volume, std::optional<Place> place) {
    auto view = std::make_shared<TableView>(*views_.get());
    std::vector<storage::LogPtr> ended;
    {
        base::MutexLock lock(mutex_);
        auto next = *places_;
        next.erase(volume);
        if (place) next.emplace(volume, *place);
        places_ = std::make_shared<const Places>(std::move(next));
        // Their jobs find nothing, or what came later.
        const auto is_there = [&](const auto& step) {
            return step.partition->tenancy().tenure().volume == volume;
        };
        std::erase_if(openings_.steps, is_there);
        std::erase_if(closings_.steps, is_there);
        const auto end_life = [&](const HostedPartitionPtr& partition) KAAS_REQUIRES(mutex_) {
            if (!partition || !partition->tenancy().holds_on(volume)) return;
            if (auto log = start_over(partition)) ended.push_back(std::move(log));
        };
        for (const auto& [id, local] : topics_) std::ranges::for_each(local.partitions, end_life);
        for (const auto& [id, removal] : removals_)
            std::ranges::for_each(removal.closing, end_life);
        // An image may have named the new life before it is here.
        const auto nobody = std::make_shared<Batch>(catalog::ImageVersion{}, 1);
        if (!closing_) {
            for (const auto* topic : view->image->topics_by_name()) {
                if (!catalog::slot_kind(topic->name)) host(*topic, false, *view, nobody);
            }
        }
        views_.set(std::move(view));
        note_change();
    }
    for (const auto& log : ended) log->abandon(storage::ErrorCode::kFenced);
    flush();
}

storage::LogPtr PartitionTable::Impl::start_over(const HostedPartitionPtr& partition) {
    auto log = partition->start_over();
    go_on(partition);  // images that waited for it do not any more
    return log;
}

// ---- leaving ----------------------------------------------------------------------------------

bool PartitionTable::Impl::drain(std::size_t width, std::chrono::milliseconds patience) {
    const auto deadline = options_.clock->now() + patience;
    {
        base::MutexLock lock(mutex_);
        draining_ = true;
    }
    // What is left then goes at once, and should still find the time for its last lines.
    const auto last_batch = deadline - patience / 4;
    bool led = give_back_some(width);
    while (led && await_change(last_batch)) led = give_back_some(width);
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - options_.clock->now());
    return close(std::max(left, std::chrono::milliseconds(0))) && !led;
}

bool PartitionTable::Impl::give_back_some(std::size_t width) {
    bool is_over = false;
    {
        base::MutexLock lock(mutex_);
        DrainTurn<HostedPartitionPtr> turn(width);
        for (const auto& [id, local] : topics_) {
            for (const auto& partition : local.partitions) {
                if (partition) turn.see(partition, partition->tenancy());
            }
        }
        seen_changes_ = changes_;
        is_over = turn.is_over();
        for (const auto& partition : turn.to_give_back()) {
            partition->tenancy().give_back();
            go_on(partition);
        }
    }
    flush();
    return !is_over;
}

bool PartitionTable::Impl::await_change(base::Clock::Steady deadline) {
    base::MutexLock lock(mutex_);
    while (seen_changes_ == changes_) {
        const auto left = deadline - options_.clock->now();
        if (left.count() <= 0) return false;
        changed_.wait_for(mutex_, left);
    }
    return true;
}

void PartitionTable::Impl::note_change() {
    ++changes_;
    changed_.notify_all();
}

bool PartitionTable::Impl::close(std::chrono::milliseconds patience) {
    const auto now = options_.clock->now();
    {
        base::MutexLock lock(mutex_);
        closing_ = true;
        release_patience_.close_within(patience);
        auto nobody = std::make_shared<Batch>(catalog::ImageVersion{}, 1);  // never reported
        for (const auto& [id, local] : topics_) {
            for (const auto& partition : local.partitions) {
                if (partition) aim(partition, std::nullopt, nobody);
            }
        }
    }
    flush();
    if (jobs_->all_done(*options_.clock, now + patience)) return true;
    const auto undone = jobs_->take_back();  // they hold logs, which go after the call
    const auto open = list_open_logs();
    base::log::warn("cluster",
                    "{} partitions were not released in time: the next start recovers them",
                    open.size());
    for (const auto& log : open) log->abandon(storage::ErrorCode::kClosed);
    return false;
}

}  // namespace kaas::cluster
