#pragma once

#include "base/mutex.h"

#include <atomic>
#include <cstddef>
#include <memory>
#include <vector>

namespace kaas::storage {

/// Bounds how many files a process keeps open at once, however many it knows: who opens one more
/// than the limit closes one that nobody has used lately.
///
/// A file that is in use stays open, so the limit may be passed by as many as there are threads at
/// work. Which one goes is a matter of second chances (the clock algorithm): a use costs one store,
/// no lock. Thread: any.
class DescriptorCache {
public:
    explicit DescriptorCache(std::size_t limit) : limit_(limit) {}
    DescriptorCache(const DescriptorCache&) = delete;
    DescriptorCache& operator=(const DescriptorCache&) = delete;

    /// A file that can be opened again. Calls `leave` before it is destroyed.
    class Member {
    public:
        Member() = default;
        Member(const Member&) = delete;
        Member& operator=(const Member&) = delete;

    protected:
        ~Member() = default;
        void touch() { used_.store(true, std::memory_order_relaxed); }

    private:
        friend class DescriptorCache;
        enum class State { kOut, kIn, kClosing };

        /// Closes the descriptor; false when it has to stay open for now. Quick: called under the
        /// cache's lock, so it must not call the cache.
        virtual bool close_clean() = 0;
        /// As `close_clean`, also when the file has unsynced writes: after a sync. May block.
        virtual bool close_dirty() = 0;
        /// Keeps it for the time of `close_dirty`, so that who gives it back need not wait for
        /// that. Null when it is about to end. Quick, as `close_clean`.
        [[nodiscard]] virtual std::shared_ptr<void> owner() = 0;

        std::atomic<bool> used_ = true;
        State state_ = State::kOut;  ///< the cache's lock
        std::size_t place_ = 0;      ///< in the ring; the cache's lock
    };

    /// `member` has opened its descriptor. Closes others if that makes too many; may block.
    void enter(Member& member) KAAS_EXCLUDES(mutex_);
    /// `member` is about to end, and is called no more once this returns.
    void leave(Member& member) KAAS_EXCLUDES(mutex_);
    /// Closes one file, because the process has no descriptor left. False when none can be. May
    /// block.
    bool close_one() KAAS_EXCLUDES(mutex_);

    [[nodiscard]] std::size_t open() const KAAS_EXCLUDES(mutex_) {
        base::MutexLock lock(mutex_);
        return ring_.size();
    }
    [[nodiscard]] std::size_t limit() const { return limit_; }

private:
    [[nodiscard]] bool full() const KAAS_EXCLUDES(mutex_) { return open() > limit_; }
    bool close_a_dirty_one() KAAS_EXCLUDES(mutex_);
    void insert(Member& member) KAAS_REQUIRES(mutex_);
    void erase(Member& member) KAAS_REQUIRES(mutex_);
    /// Closes a file that costs no sync; false when there is none.
    bool close_a_clean_one() KAAS_REQUIRES(mutex_);
    struct Taken {
        Member* member = nullptr;
        std::shared_ptr<void> owner;
    };
    /// Takes the next file out of the ring that was not used lately; null when there is none.
    [[nodiscard]] Taken take_a_dirty_one() KAAS_REQUIRES(mutex_);

    const std::size_t limit_;
    mutable base::Mutex mutex_;
    base::CondVar closed_;
    std::vector<Member*> ring_ KAAS_GUARDED_BY(mutex_);
    std::size_t hand_ KAAS_GUARDED_BY(mutex_) = 0;
};

}  // namespace kaas::storage
