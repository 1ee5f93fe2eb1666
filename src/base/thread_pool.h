#pragma once

#include "base/executor.h"
#include "base/mutex.h"

#include <cstddef>
#include <deque>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace kaas::base {

/// A fixed set of threads for blocking work. Work runs in any order relative to other work.
/// The destructor finishes what was posted, then joins. An exception of `work` ends the process, as
/// in `run_thread`: somebody counts on its end. Who can go on without it catches it in the work.
class ThreadPool final : public Executor {
public:
    /// `name` is what `top -H` shows; at most 11 characters are kept, a number follows.
    /// Throws std::system_error when the system gives no more threads.
    ThreadPool(const std::string& name, std::size_t threads);
    ~ThreadPool() override;
    ThreadPool(const ThreadPool&) = delete;
    ThreadPool& operator=(const ThreadPool&) = delete;

    void post(Work work) override KAAS_EXCLUDES(mutex_);
    /// Finishes what was posted, then joins; what is posted later is dropped. May be called twice,
    /// not on a thread of the pool.
    void stop() KAAS_EXCLUDES(mutex_);

private:
    void run() KAAS_EXCLUDES(mutex_);

    Mutex mutex_;
    CondVar wake_;
    std::deque<Work> queue_ KAAS_GUARDED_BY(mutex_);
    bool stopping_ KAAS_GUARDED_BY(mutex_) = false;
    std::vector<std::thread> threads_;
};

/// Runs the whole life of a thread that the process cannot do without, under `name`. An exception
/// that gets this far ends the process, its reason in the log: a restart serves better than a
/// broker that commits nothing any more and does not say so.
void run_thread(const std::string& name, const std::function<void()>& body) noexcept;

/// Names the calling thread for `top -H` and debuggers (15 characters at most, prctl(2)).
void set_thread_name(const std::string& name);

}  // namespace kaas::base
