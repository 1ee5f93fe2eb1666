#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

/// Clang's thread-safety attributes; `-Wthread-safety` turns a forgotten lock into a compile error.
#define KAAS_CAPABILITY(name) __attribute__((capability(name)))
#define KAAS_SCOPED_CAPABILITY __attribute__((scoped_lockable))
#define KAAS_GUARDED_BY(mutex) __attribute__((guarded_by(mutex)))
#define KAAS_PT_GUARDED_BY(mutex) __attribute__((pt_guarded_by(mutex)))
#define KAAS_REQUIRES(...) __attribute__((requires_capability(__VA_ARGS__)))
#define KAAS_EXCLUDES(...) __attribute__((locks_excluded(__VA_ARGS__)))
#define KAAS_ACQUIRE(...) __attribute__((acquire_capability(__VA_ARGS__)))
#define KAAS_RELEASE(...) __attribute__((release_capability(__VA_ARGS__)))
#define KAAS_TRY_ACQUIRE(...) __attribute__((try_acquire_capability(__VA_ARGS__)))
#define KAAS_NO_THREAD_SAFETY_ANALYSIS __attribute__((no_thread_safety_analysis))

namespace kaas::base {

/// A `std::mutex` that the compiler knows.
class KAAS_CAPABILITY("mutex") Mutex {
public:
    Mutex() = default;
    Mutex(const Mutex&) = delete;
    Mutex& operator=(const Mutex&) = delete;

    void lock() KAAS_ACQUIRE() { mutex_.lock(); }
    void unlock() KAAS_RELEASE() { mutex_.unlock(); }
    bool try_lock() KAAS_TRY_ACQUIRE(true) { return mutex_.try_lock(); }

private:
    friend class CondVar;
    std::mutex mutex_;
};

/// Holds a `Mutex` for a scope.
class KAAS_SCOPED_CAPABILITY MutexLock {
public:
    explicit MutexLock(Mutex& mutex) KAAS_ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
    ~MutexLock() KAAS_RELEASE() { mutex_.unlock(); }
    MutexLock(const MutexLock&) = delete;
    MutexLock& operator=(const MutexLock&) = delete;

private:
    Mutex& mutex_;
};

/// A condition variable for `Mutex`. Callers loop on their condition: wake-ups may be spurious.
class CondVar {
public:
    void wait(Mutex& mutex) KAAS_REQUIRES(mutex) {
        std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
        condition_.wait(lock);
        lock.release();
    }
    /// False when `timeout` passed without a wake-up.
    bool wait_for(Mutex& mutex, std::chrono::nanoseconds timeout) KAAS_REQUIRES(mutex) {
        std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
        auto status = condition_.wait_for(lock, timeout);
        lock.release();
        return status == std::cv_status::no_timeout;
    }
    void notify_one() { condition_.notify_one(); }
    void notify_all() { condition_.notify_all(); }

private:
    std::condition_variable condition_;
};

}  // namespace kaas::base
