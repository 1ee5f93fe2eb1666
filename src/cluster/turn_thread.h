#pragma once

#include "base/clock.h"
#include "base/mutex.h"
#include "base/thread_pool.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <utility>

namespace kaas::cluster {

/// Runs `turn` on a thread of its own, again and again: when woken, and by the time that the last
/// turn gave.
class TurnThread {
public:
    using Turn = std::function<base::Clock::Steady()>;

    TurnThread(std::string name, base::Clock& clock, Turn turn)
        : name_(std::move(name)), clock_(clock), turn_(std::move(turn)) {}
    ~TurnThread() { stop(); }
    TurnThread(const TurnThread&) = delete;
    TurnThread& operator=(const TurnThread&) = delete;

    /// Takes turns on the caller's thread until `done` after one of them. Before `start`.
    void run_here(const std::function<bool()>& done) KAAS_EXCLUDES(mutex_) {
        while (true) {
            const auto next = turn_();
            if (done() || !wait_until(next)) return;
        }
    }
    void start() {
        thread_ = std::thread([this] { base::run_thread(name_, [this] { run(); }); });
    }
    void wake() KAAS_EXCLUDES(mutex_) {
        base::MutexLock lock(mutex_);
        woken_ = true;
        changed_.notify_all();
    }
    void stop() KAAS_EXCLUDES(mutex_) {
        {
            base::MutexLock lock(mutex_);
            stopping_ = true;
            changed_.notify_all();
        }
        if (thread_.joinable()) thread_.join();
    }

private:
    void run() KAAS_EXCLUDES(mutex_) {
        while (wait_until(turn_())) {
        }
    }
    /// False when the thread is to end.
    [[nodiscard]] bool wait_until(base::Clock::Steady next) KAAS_EXCLUDES(mutex_) {
        base::MutexLock lock(mutex_);
        while (!woken_ && !stopping_) {
            const auto now = clock_.now();
            if (next <= now) break;
            // Never for long: the clock may be one that a test moves.
            changed_.wait_for(
                mutex_, std::min<std::chrono::nanoseconds>(next - now, std::chrono::seconds(1)));
        }
        woken_ = false;
        return !stopping_;
    }

    const std::string name_;
    base::Clock& clock_;
    const Turn turn_;
    base::Mutex mutex_;
    base::CondVar changed_;
    bool woken_ KAAS_GUARDED_BY(mutex_) = false;
    bool stopping_ KAAS_GUARDED_BY(mutex_) = false;
    std::thread thread_;
};

}  // namespace kaas::cluster
