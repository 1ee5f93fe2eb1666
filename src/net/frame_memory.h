#pragma once

#include "base/buffer.h"
#include "base/bytes.h"

#include <cstddef>
#include <functional>
#include <vector>

namespace kaas::net {

/// The memory that requests in flight hold, over all connections of a server
/// (`queued.max.request.bytes`). At most the limit and one frame.
/// Thread: any. Outlives every frame.
class FrameMemory {
public:
    /// `on_free` runs on a releasing thread after memory came back for which `allocate` was
    /// refused.
    FrameMemory(std::size_t limit_bytes, std::function<void()> on_free);

    /// Empty when there is no memory now: stop reading, and try again after `on_free` with
    /// `waited`.
    ///
    /// Who has waited may take the one place beyond the limit. Without it, connections that hold
    /// the first bytes of a large frame in a slab while they wait for the rest could block each
    /// other for ever.
    [[nodiscard]] base::BlockRef allocate(std::size_t bytes, bool waited);

    [[nodiscard]] std::size_t used() const { return budget_.used() + beyond_.used(); }
    [[nodiscard]] std::size_t limit() const { return budget_.limit(); }

private:
    [[nodiscard]] base::BlockRef try_allocate(std::size_t bytes, bool waited);

    base::MemoryBudget budget_;
    base::MemoryBudget beyond_;  ///< of limit 0: fits one block when it holds none
};

/// Where one reactor receives small frames: a counted slab that many connections fill in turn, one
/// recv after the other. Frames are slices of it, and it is used again as soon as none is left.
///
/// A reactor's first slab is not of the request memory, so that an idle or slow connection
/// elsewhere cannot keep a reactor from receiving; those it needs beside that one are. Thread: the
/// reactor's only.
class SlabSource {
public:
    static constexpr std::size_t kSlabBytes = 256 << 10;
    /// A frame up to here lives in a slab; a larger one gets memory of its own.
    static constexpr std::size_t kSmallFrameMax = 64 << 10;

    explicit SlabSource(FrameMemory& memory) : memory_(memory) {}

    [[nodiscard]] FrameMemory& memory() { return memory_; }
    /// Provides for the calls below; false when there is no memory. Call it before each use.
    [[nodiscard]] bool ensure();
    [[nodiscard]] const base::BlockRef& block() const { return slab_; }
    /// Where a recv may write. It ends `kSmallFrameMax` before the slab does, so that a small frame
    /// which is cut off at its end can be completed in place: no byte of it is ever moved.
    [[nodiscard]] base::MutableBytes room() const;
    /// The first `bytes` of the room were filled: they are the caller's now.
    [[nodiscard]] base::MutableBytes take(std::size_t bytes);
    /// Adds the `bytes` after what was taken last, `left()` at most.
    void extend(std::size_t bytes);
    [[nodiscard]] std::size_t left() const { return kSlabBytes - filled_; }
    /// Gives memory back that no frame uses.
    void trim();

private:
    /// Below this much room a recv would bring too little.
    static constexpr std::size_t kRoomMin = 32 << 10;
    static constexpr std::size_t kSparesMax = 4;

    [[nodiscard]] base::BlockRef take_spare();

    FrameMemory& memory_;
    base::BlockRef slab_;
    const base::Block* home_ = nullptr;  ///< the first one, if there is one
    std::size_t filled_ = 0;
    std::vector<base::BlockRef> spares_;  ///< full ones, waiting for their last frame to end
};

}  // namespace kaas::net
