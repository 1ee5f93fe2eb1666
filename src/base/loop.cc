#include "base/loop.h"

#include "base/clock.h"
#include "base/mutex.h"
#include "base/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace kaas::base {
namespace {

/// So often a thread without work shows that it lives.
constexpr std::chrono::seconds kTick{1};

}  // namespace

Loop::Loop(const std::string& name, Clock& clock) : clock_(clock) {
    thread_ = std::thread([this, name] { run_thread(name, [this] { run(); }); });
}

Loop::~Loop() { stop(); }

void Loop::stop() {
    {
        MutexLock lock(mutex_);
        stopping_ = true;
    }
    wake_.notify_one();
    if (thread_.joinable()) thread_.join();
}

void Loop::post(Work work) {
    {
        MutexLock lock(mutex_);
        if (stopping_) return;
        posted_.push_back(std::move(work));
        if (posted_.size() > 1) return;  // the first has woken the thread, or it is awake
    }
    wake_.notify_one();
}

void Loop::run() {
    std::vector<Work> work;
    while (wait_for_work(work)) {
        ticks_.fetch_add(1, std::memory_order_relaxed);
        for (auto& one : work) one();
        work.clear();
        run_due();
    }
}

bool Loop::wait_for_work(std::vector<Work>& work) {
    MutexLock lock(mutex_);
    if (posted_.empty() && !stopping_) {
        std::chrono::nanoseconds pause = kTick;
        if (const auto deadline = timers_.next_deadline()) {
            pause = std::min(pause, std::chrono::nanoseconds(*deadline - clock_.now()));
        }
        if (pause.count() > 0) static_cast<void>(wake_.wait_for(mutex_, pause));
    }
    work.swap(posted_);
    return !work.empty() || !stopping_;
}

void Loop::run_due() {
    const auto now = clock_.now();
    while (auto callback = timers_.take_due(now)) callback();
}

}  // namespace kaas::base
