#include "base/clock.h"
#include "base/log.h"
#include "base/mutex.h"
#include "catalog/image.h"
#include "cluster/drain_turn.h"
#include "cluster/jobs.h"
#include "cluster/place.h"
#include "cluster/slot_table.h"
#include "cluster/slot_table_impl.h"
#include "cluster/tenancy.h"
#include "storage/error.h"
#include "storage/slot_log.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

/// How all slots leave this broker, or the volume that they are on.
namespace kaas::cluster {

// ---- another life on the volume ---------------------------------------------------------------

void SlotTable::Impl::set_place(const std::string& volume, std::optional<Place> place) {
    std::vector<SlotLogPtr> ended;
    {
        base::MutexLock lock(mutex_);
        auto next = *places_;
        next.erase(volume);
        if (place) next.emplace(volume, *place);
        places_ = std::make_shared<const Places>(std::move(next));
        std::erase_if(leaving_,
                      [&](const Leaving& one) { return one.slot->tenancy.holds_on(volume); });
        for (const auto& [id, slot] : slots_) {
            if (!slot->tenancy.holds_on(volume)) continue;
            if (slot->log) ended.push_back(slot->log);
            if (!slot->with_host) {
                start_over(slot);
            } else if (!std::exchange(slot->lost, true) && !slot->tenancy.busy()) {
                slot->tenancy.fails();
                leave(slot, [self = shared_from_this(), slot] { self->left_lost(slot); });
            }
        }
        // An image may have named the new life before it is here.
        if (!closing_) host_all(nullptr, std::make_shared<Batch>(catalog::ImageVersion{}, 1));
        note_change();
    }
    for (const auto& log : ended) log->abandon(storage::ErrorCode::kFenced);
    flush();
}

void SlotTable::Impl::start_over(const HostedSlotPtr& slot) {
    ++slot->life;
    slot->lost = false;
    slot->with_host = false;
    slot->log.reset();
    slot->tenancy.start_over();
    go_on(slot);  // images that waited for it do not any more
}

bool SlotTable::Impl::end_lost(const HostedSlotPtr& slot) {
    slot->with_host = false;
    if (!slot->lost) return false;
    start_over(slot);
    const auto* topic = image_->topic(slot->partition.topic);
    if (!closing_ && topic != nullptr)
        host(*topic, slot->id.kind, std::make_shared<Batch>(catalog::ImageVersion{}, 1));
    return true;
}

void SlotTable::Impl::left_lost(const HostedSlotPtr& slot) {
    {
        base::MutexLock lock(mutex_);
        std::ignore = end_lost(slot);
    }
    flush();
}

// ---- leaving ----------------------------------------------------------------------------------

bool SlotTable::Impl::drain(std::size_t width, std::chrono::milliseconds patience) {
    const auto deadline = options_.clock->now() + patience;
    {
        base::MutexLock lock(mutex_);
        draining_ = true;
    }
    const auto last_batch = deadline - patience / 4;  // the rest is for what is left
    bool led = give_back_some(width);
    while (led && await_change(last_batch)) led = give_back_some(width);
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - options_.clock->now());
    return close(std::max(left, std::chrono::milliseconds(0))) && !led;
}

bool SlotTable::Impl::give_back_some(std::size_t width) {
    bool is_over = false;
    {
        base::MutexLock lock(mutex_);
        DrainTurn<HostedSlotPtr> turn(width);
        for (const auto& [id, slot] : slots_) turn.see(slot, slot->tenancy);
        seen_changes_ = changes_;
        is_over = turn.is_over();
        for (const auto& slot : turn.to_give_back()) {
            slot->tenancy.give_back();
            go_on(slot);
        }
    }
    flush();
    return !is_over;
}

bool SlotTable::Impl::await_change(base::Clock::Steady deadline) {
    base::MutexLock lock(mutex_);
    while (seen_changes_ == changes_) {
        const auto left = deadline - options_.clock->now();
        if (left.count() <= 0) return false;
        changed_.wait_for(mutex_, left);
    }
    return true;
}

bool SlotTable::Impl::close(std::chrono::milliseconds patience) {
    const auto deadline = options_.clock->now() + patience;
    {
        base::MutexLock lock(mutex_);
        closing_ = true;
        release_patience_.close_within(patience);
        auto nobody = std::make_shared<Batch>(catalog::ImageVersion{}, 1);  // never reported
        for (const auto& [id, slot] : slots_) aim(slot, std::nullopt, nobody);
    }
    flush();
    if (all_at_rest(deadline) && jobs_->all_done(*options_.clock, deadline)) return true;
    std::vector<SlotLogPtr> open;
    {
        base::MutexLock lock(mutex_);
        open = open_logs();
    }
    const auto undone = jobs_->take_back();  // they hold logs, which go after the call
    base::log::warn("cluster", "{} slots were not released in time: the next start recovers them",
                    open.size());
    for (const auto& log : open) log->abandon(storage::ErrorCode::kClosed);
    return false;
}

bool SlotTable::Impl::all_at_rest(base::Clock::Steady deadline) {
    const auto is_busy = [](const auto& entry) { return entry.second->tenancy.busy(); };
    base::MutexLock lock(mutex_);
    while (std::ranges::any_of(slots_, is_busy)) {
        const auto left = deadline - options_.clock->now();
        if (left.count() <= 0) return false;
        changed_.wait_for(mutex_, left);
    }
    return true;
}

}  // namespace kaas::cluster
