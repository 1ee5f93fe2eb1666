#include "base/thread_pool.h"

#include "base/log.h"
#include "base/mutex.h"

#include <sys/prctl.h>

#include <cstddef>
#include <cstdlib>
#include <exception>
#include <functional>
#include <string>
#include <utility>

namespace kaas::base {

void set_thread_name(const std::string& name) { ::prctl(PR_SET_NAME, name.c_str()); }

void run_thread(const std::string& name, const std::function<void()>& body) noexcept {
    set_thread_name(name);
    try {
        body();
        return;
    } catch (const std::exception& e) {
        log::error("base", "thread {} cannot go on, the process ends: {}", name, e.what());
    } catch (...) {
        log::error("base", "thread {} cannot go on, the process ends: an unknown exception", name);
    }
    std::abort();
}

ThreadPool::ThreadPool(const std::string& name, std::size_t threads) {
    try {
        for (std::size_t i = 0; i < threads; ++i) {
            threads_.emplace_back([this, label = name.substr(0, 11) + "-" + std::to_string(i)] {
                run_thread(label, [this] { run(); });
            });
        }
    } catch (...) {
        stop();  // a thread that nobody joins would end the process before anyone can say why
        throw;
    }
}

ThreadPool::~ThreadPool() { stop(); }

void ThreadPool::stop() {
    {
        MutexLock lock(mutex_);
        stopping_ = true;
    }
    wake_.notify_all();
    for (auto& thread : threads_) thread.join();
    threads_.clear();
}

void ThreadPool::post(Work work) {
    {
        MutexLock lock(mutex_);
        if (stopping_) return;
        queue_.push_back(std::move(work));
    }
    wake_.notify_one();
}

void ThreadPool::run() {
    for (;;) {
        Work work;
        {
            MutexLock lock(mutex_);
            while (queue_.empty() && !stopping_) wake_.wait(mutex_);
            if (queue_.empty()) return;
            work = std::move(queue_.front());
            queue_.pop_front();
        }
        work();
    }
}

}  // namespace kaas::base
