#pragma once

#include "base/mutex.h"

#include <cstddef>
#include <exception>
#include <functional>
#include <string_view>
#include <unordered_map>

namespace kaas::base {

/// The tasks of one owner: counts them, asks them to stop, waits for the last one, and never loses
/// an exception. Coroutines are started into a scope by `net::spawn`. Thread: any. The owner calls
/// `stop()` then `join()` before it dies.
class TaskScope {
public:
    /// A running task's place; the task ends when it is destroyed.
    class Token {
    public:
        Token() = default;
        Token(Token&& other) noexcept;
        Token& operator=(Token&& other) noexcept;
        ~Token();

        explicit operator bool() const { return scope_ != nullptr; }

    private:
        friend class TaskScope;
        Token(TaskScope* scope, std::size_t id) : scope_(scope), id_(id) {}
        TaskScope* scope_ = nullptr;
        std::size_t id_ = 0;
    };

    TaskScope() = default;
    TaskScope(const TaskScope&) = delete;
    TaskScope& operator=(const TaskScope&) = delete;
    ~TaskScope();

    /// Counts a new task; `cancel` is called at most once, by `stop()`, on the thread that stops.
    /// An empty token means that the scope is stopping and the task must not start.
    [[nodiscard]] Token enter(std::function<void()> cancel = {}) KAAS_EXCLUDES(mutex_);
    /// What a task's root caught: logged with `what` and counted.
    void failed(std::string_view what, const std::exception_ptr& error) KAAS_EXCLUDES(mutex_);

    /// Refuses new tasks and cancels the running ones. May be called twice.
    void stop() KAAS_EXCLUDES(mutex_);
    /// Blocks until no task runs. Never call it on a thread that the tasks need.
    void join() KAAS_EXCLUDES(mutex_);

    [[nodiscard]] std::size_t failures() const KAAS_EXCLUDES(mutex_);

private:
    void leave(std::size_t id) KAAS_EXCLUDES(mutex_);

    mutable Mutex mutex_;
    CondVar empty_;
    std::unordered_map<std::size_t, std::function<void()>> running_ KAAS_GUARDED_BY(mutex_);
    std::size_t next_id_ KAAS_GUARDED_BY(mutex_) = 0;
    std::size_t failures_ KAAS_GUARDED_BY(mutex_) = 0;
    bool stopping_ KAAS_GUARDED_BY(mutex_) = false;
};

}  // namespace kaas::base
