#pragma once

#include "base/mutex.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

namespace kaas::cluster {

/// A value that is replaced as a whole now and then, and read all the time.
///
/// Readers keep a `Reader` each and pay one atomic load while nothing changes: no lock, and no
/// shared counter that the cores would pull to and fro. Thread: any; a `Reader` belongs to one
/// thread at a time.
template <class T>
class Versioned {
public:
    using Ptr = std::shared_ptr<const T>;

    explicit Versioned(Ptr first) : current_(std::move(first)) {}

    [[nodiscard]] Ptr get() const KAAS_EXCLUDES(mutex_) {
        base::MutexLock lock(mutex_);
        return current_;
    }
    void set(Ptr next) KAAS_EXCLUDES(mutex_) {
        {
            base::MutexLock lock(mutex_);
            std::swap(current_, next);
            generation_.fetch_add(1, std::memory_order_release);
        }
        // The old value, perhaps the last reference to it, dies here, outside the lock.
    }

    /// One thread's view. Gives a value that was current at some moment after the call began.
    class Reader {
    public:
        explicit Reader(const Versioned& source) : source_(&source) {}

        /// The reference lives until the next call on this reader; copy the pointer to keep it.
        [[nodiscard]] const Ptr& get() {
            auto generation = source_->generation_.load(std::memory_order_acquire);
            if (generation != seen_) {
                // A newer value than `generation` may be fetched: the next call then fetches it
                // once more.
                cached_ = source_->get();
                seen_ = generation;
            }
            return cached_;
        }

    private:
        const Versioned* source_;
        std::uint64_t seen_ = 0;
        Ptr cached_;
    };

private:
    mutable base::Mutex mutex_;
    Ptr current_ KAAS_GUARDED_BY(mutex_);
    std::atomic<std::uint64_t> generation_ = 1;
};

}  // namespace kaas::cluster
