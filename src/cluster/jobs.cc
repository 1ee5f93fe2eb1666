#include "cluster/jobs.h"

#include "base/clock.h"
#include "base/mutex.h"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <utility>

namespace kaas::cluster {

void Jobs::add(Job job) {
    base::MutexLock lock(mutex_);
    waiting_.push_back(std::move(job));
}

void Jobs::start() {
    std::size_t more = 0;
    {
        base::MutexLock lock(mutex_);
        more = std::min(width_ - std::min(workers_, width_), waiting_.size());
        workers_ += more;
    }
    for (std::size_t i = 0; i < more; ++i) {
        pool_.post([self = shared_from_this()] { self->run(); });
    }
}

void Jobs::run() {
    while (true) {
        Job job;
        {
            base::MutexLock lock(mutex_);
            if (waiting_.empty()) {
                if (--workers_ == 0) idle_.notify_all();
                return;
            }
            job = std::move(waiting_.front());
            waiting_.pop_front();
        }
        job();
    }
}

bool Jobs::all_done(base::Clock& clock, base::Clock::Steady deadline) {
    base::MutexLock lock(mutex_);
    while (workers_ > 0 || !waiting_.empty()) {
        const auto left = deadline - clock.now();
        if (left.count() <= 0) return false;
        idle_.wait_for(mutex_, left);
    }
    return true;
}

std::deque<Jobs::Job> Jobs::take_back() {
    base::MutexLock lock(mutex_);
    return std::exchange(waiting_, {});
}

}  // namespace kaas::cluster
