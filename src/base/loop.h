#pragma once

#include "base/clock.h"
#include "base/executor.h"
#include "base/mutex.h"
#include "base/timer_queue.h"

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

namespace kaas::base {

/// One thread that runs what is posted to it, in order, and the timers that its work arms: what
/// passive state machines live on. An exception of `work` ends the process, as in `run_thread`.
class Loop final : public Executor {
public:
    /// `name` is what `top -H` shows. Throws std::system_error when the system gives no thread.
    explicit Loop(const std::string& name, Clock& clock = Clock::system());
    ~Loop() override;
    Loop(const Loop&) = delete;
    Loop& operator=(const Loop&) = delete;

    /// Thread: any. Work that comes after `stop` is dropped.
    void post(Work work) override KAAS_EXCLUDES(mutex_);
    /// Thread: the loop's.
    [[nodiscard]] TimerQueue& timers() { return timers_; }
    /// Bumped at least once a second; one that stands still means that the thread is wedged.
    [[nodiscard]] std::uint64_t ticks() const { return ticks_.load(std::memory_order_relaxed); }
    /// Runs what was posted, and no timer any more; joins. May be called twice, not on the loop.
    void stop() KAAS_EXCLUDES(mutex_);

private:
    void run() KAAS_EXCLUDES(mutex_);
    /// False when the loop has come to its end.
    [[nodiscard]] bool wait_for_work(std::vector<Work>& work) KAAS_EXCLUDES(mutex_);
    void run_due();

    Clock& clock_;
    TimerQueue timers_;
    std::atomic<std::uint64_t> ticks_ = 0;
    Mutex mutex_;
    CondVar wake_;
    std::vector<Work> posted_ KAAS_GUARDED_BY(mutex_);
    bool stopping_ KAAS_GUARDED_BY(mutex_) = false;
    std::thread thread_;
};

}  // namespace kaas::base
