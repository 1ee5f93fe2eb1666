#pragma once

#include "base/clock.h"
#include "base/executor.h"
#include "base/mutex.h"
#include "storage/volume.h"

#include <atomic>
#include <cstdint>
#include <memory>

namespace kaas::storage {

/// How much a volume may still take of what can be refused: produced batches, journal files, what a
/// compaction writes. The rest is kept for what frees space again, or must go on: log starts, new
/// epochs, the controller's lines and the coordinators' (docs/decisions/0024).
///
/// What others write to the same file system shows with the next look, a second later at most while
/// anything is written. Thread: any, unless said otherwise.
class Room : public std::enable_shared_from_this<Room> {
public:
    /// What is kept: room for thousands of lines and small files, and no more than a fiftieth of a
    /// small volume.
    static constexpr std::uint64_t kReserveBytes = std::uint64_t{64} << 20;
    static constexpr std::uint64_t kReservePart = 50;
    /// Less than the largest batch of most topics is as good as nothing.
    static constexpr std::int64_t kLeastBytes = std::int64_t{1} << 20;

    Room(Volume& volume, base::Executor& io_pool, base::Clock& clock)
        : volume_(volume), io_pool_(io_pool), clock_(clock) {}

    [[nodiscard]] static std::uint64_t reserve_of(const Space& space);

    /// False when so much does not fit any more. Before the first look everything fits.
    [[nodiscard]] bool take(std::uint64_t bytes);
    [[nodiscard]] bool is_full() const { return full_.load(std::memory_order_relaxed); }
    /// Asks the volume, unless that was done within the last second. Blocks.
    void look() KAAS_EXCLUDES(mutex_);

private:
    Volume& volume_;
    base::Executor& io_pool_;
    base::Clock& clock_;
    std::atomic<std::int64_t> left_ = INT64_MAX;
    std::atomic<bool> full_ = false;
    std::atomic<bool> look_asked_ = false;
    std::atomic<base::Clock::Steady> next_look_ = base::Clock::Steady::min();
    base::Mutex mutex_;
    std::int64_t granted_ KAAS_GUARDED_BY(mutex_) = INT64_MAX;  ///< by the last look
};

}  // namespace kaas::storage
