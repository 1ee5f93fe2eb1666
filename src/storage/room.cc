#include "storage/room.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mutex.h"
#include "storage/volume.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>

namespace kaas::storage {
namespace {

constexpr std::chrono::seconds kInterval{1};

}  // namespace

std::uint64_t Room::reserve_of(const Space& space) {
    return std::min(kReserveBytes, space.total_bytes / kReservePart);
}

bool Room::take(std::uint64_t bytes) {
    const auto wanted = static_cast<std::int64_t>(bytes);
    if (left_.fetch_sub(wanted, std::memory_order_relaxed) >= wanted) return true;
    left_.fetch_add(wanted, std::memory_order_relaxed);
    // Nothing is committed while all is refused: those who are refused ask for the look.
    if (clock_.now() >= next_look_.load() && !look_asked_.exchange(true))
        io_pool_.post([self = shared_from_this()] { self->look(); });
    return false;
}

void Room::look() {
    base::MutexLock lock(mutex_);
    look_asked_ = false;
    if (clock_.now() < next_look_.load()) return;
    const auto space = volume_.space();
    next_look_ = clock_.now() + kInterval;
    if (!space) return;  // whatever is wrong, writers meet it themselves
    // What was taken since the last look may not have reached the volume yet: it is counted twice,
    // until the next.
    const auto on_its_way = granted_ - left_.load(std::memory_order_relaxed);
    const auto reserve = static_cast<std::int64_t>(reserve_of(*space));
    const auto left = static_cast<std::int64_t>(space->usable_bytes) - reserve - on_its_way;
    const bool full = left < kLeastBytes;
    granted_ = full ? 0 : left;
    left_.store(granted_, std::memory_order_relaxed);
    if (full_.exchange(full) == full) return;
    if (full) {
        base::log::warn("storage", "{}: full but for {} bytes: batches are refused", volume_.root(),
                        space->usable_bytes);
    } else {
        base::log::info("storage", "{}: there is room again", volume_.root());
    }
}

}  // namespace kaas::storage
