#include "bin/last_resort.h"

#include "base/clock.h"
#include "base/mutex.h"
#include "base/thread_pool.h"

#include <chrono>
#include <functional>
#include <thread>
#include <utility>

namespace kaas::bin {

LastResort::LastResort(std::chrono::milliseconds after, std::function<void()> act)
    : after_(after), act_(std::move(act)) {
    thread_ = std::thread([this] { base::run_thread("last-resort", [this] { run(); }); });
}

LastResort::~LastResort() {
    {
        base::MutexLock lock(mutex_);
        over_ = true;
        changed_.notify_all();
    }
    thread_.join();
}

void LastResort::run() {
    const auto& clock = base::Clock::system();
    const auto deadline = clock.now() + after_;
    {
        base::MutexLock lock(mutex_);
        while (!over_) {
            const auto left = deadline - clock.now();
            if (left.count() <= 0) break;
            changed_.wait_for(mutex_, left);
        }
        if (over_) return;
    }
    act_();
}

}  // namespace kaas::bin
