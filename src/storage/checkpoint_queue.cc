#include "storage/checkpoint_queue.h"

#include "base/mutex.h"
#include "storage/commit_cycle.h"
#include "storage/volume.h"

#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace kaas::storage {

void CheckpointQueue::add(std::unique_ptr<Checkpoint> checkpoint) {
    base::MutexLock lock(mutex_);
    if (!closed_) added_.push_back(std::move(checkpoint));
}

void CheckpointQueue::start() {
    {
        base::MutexLock lock(mutex_);
        if (added_.empty() || std::exchange(running_, true)) return;
    }
    options_.io_pool->post([self = shared_from_this()] { self->run(); });
}

void CheckpointQueue::close() {
    Checkpoints dropped;  // they hold their logs: not under the lock
    base::MutexLock lock(mutex_);
    closed_ = true;
    dropped.swap(added_);
}

void CheckpointQueue::run() {
    for (;;) {
        Checkpoints taken;
        {
            base::MutexLock lock(mutex_);
            running_ = !added_.empty();
            if (!running_) return;
            taken.swap(added_);
        }
        run(std::move(taken));
    }
}

void CheckpointQueue::run(Checkpoints checkpoints) const {
    std::erase_if(checkpoints, [](const auto& checkpoint) { return !checkpoint->begin(); });
    auto& volume = *options_.volume;
    const bool together = checkpoints.size() >= kWorthSyncingAll && volume.can_sync_all();
    const auto syncs = together ? Syncs::kLater : Syncs::kNow;
    const auto each = [&](const auto& step) {
        run_side_by_side(options_.io_pool, options_.width, checkpoints.size(),
                         [&](std::size_t i) { step(*checkpoints[i]); });
    };
    const auto sync_all = [&] {
        const auto synced = volume.sync_all();
        each([&](Checkpoint& one) { one.all_synced(synced); });
    };
    each([&](Checkpoint& one) { one.flush(syncs); });
    if (together) sync_all();
    std::atomic<bool> wanted = false;
    each([&](Checkpoint& one) {
        if (one.record(syncs)) wanted = true;
    });
    if (together && wanted) sync_all();
    each([](Checkpoint& one) { one.end(); });
}

}  // namespace kaas::storage
