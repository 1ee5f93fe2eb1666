#pragma once

#include "base/clock.h"
#include "base/executor.h"
#include "base/mutex.h"

#include <cstddef>
#include <deque>
#include <memory>

namespace kaas::cluster {

/// Jobs that wait for the I/O pool, which has other work too: at most `width` run at once, in
/// order. Thread: any.
class Jobs : public std::enable_shared_from_this<Jobs> {
public:
    using Job = base::Executor::Work;

    Jobs(base::Executor& pool, std::size_t width) : pool_(pool), width_(width) {}

    /// Only queues it, so it may be called under the lock of whom the job is for.
    void add(Job job) KAAS_EXCLUDES(mutex_);
    /// Sees to it that what is queued runs, perhaps at once: not under that lock.
    void start() KAAS_EXCLUDES(mutex_);
    /// False when some still waits or runs at `deadline`. Blocks; not on the pool.
    [[nodiscard]] bool all_done(base::Clock& clock, base::Clock::Steady deadline)
        KAAS_EXCLUDES(mutex_);
    /// Takes back those that have not begun.
    [[nodiscard]] std::deque<Job> take_back() KAAS_EXCLUDES(mutex_);
    [[nodiscard]] std::size_t width() const { return width_; }

private:
    void run() KAAS_EXCLUDES(mutex_);

    base::Executor& pool_;
    const std::size_t width_;
    base::Mutex mutex_;
    base::CondVar idle_;
    std::deque<Job> waiting_ KAAS_GUARDED_BY(mutex_);
    std::size_t workers_ KAAS_GUARDED_BY(mutex_) = 0;
};

}  // namespace kaas::cluster
