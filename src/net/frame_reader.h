#pragma once

#include "base/buffer.h"
#include "base/bytes.h"
#include "net/frame_memory.h"

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace kaas::net {

/// Cuts one connection's bytes into frames: a big-endian int32 length, then as many bytes.
///
/// Says where the next bytes are to be received, so that they are where they stay: small frames in
/// the reactor's slab, a large one in memory of its own, reserved before it is read. Nothing is
/// moved, but the first piece of a large frame that nobody expected. Holds no memory between
/// frames. Passive: knows no socket. Thread: the connection's reactor.
class FrameReader {
public:
    enum class Next {
        kFrame,     ///< a frame was given
        kReceive,   ///< receive into `room()`, then tell `received()`
        kNoMemory,  ///< try again, with `waited`, when memory was freed
        kTooLarge,  ///< the length is above the limit (`socket.request.max.bytes`): close, as
                    ///< Apache does
        kNegative,  ///< the length is below zero: close, as Apache does
    };
    using Room = std::span<iovec>;

    explicit FrameReader(std::uint32_t frame_max_bytes) : frame_max_(frame_max_bytes) {}

    [[nodiscard]] Next next(SlabSource& slabs, bool waited, base::FrameRef& frame);
    /// Only right after `next` said kReceive, with the same `slabs`, and for one receive.
    [[nodiscard]] Room room(SlabSource& slabs, std::array<iovec, 2>& pieces);
    /// `bytes` of that room were filled.
    void received(std::size_t bytes, SlabSource& slabs);

    /// True when a frame has begun and its end has not come.
    [[nodiscard]] bool in_frame() const { return prefix_have_ > 0 || partial_.block; }
    /// Bytes moved in memory since the connection began.
    [[nodiscard]] std::uint64_t moved_bytes() const { return moved_; }

private:
    static constexpr std::size_t kPrefixBytes = 4;

    [[nodiscard]] bool valid(std::int64_t size) const { return size >= 0 && size <= frame_max_; }
    [[nodiscard]] Next begin_partial(SlabSource& slabs, bool waited);
    void begin_partial_at(base::MutableBytes body, SlabSource& slabs);
    void scan(base::MutableBytes bytes, SlabSource& slabs);
    void after_prefix(base::MutableBytes bytes, SlabSource& slabs);
    void finish_partial();
    /// True when the partial frame does not lie in a slab.
    [[nodiscard]] bool owns_memory() const;

    std::uint32_t frame_max_;
    bool expect_large_ = false;  ///< the last frame was: receive the next prefix alone

    // Given in this order: a frame that was received in pieces, then frames in a row within a slab.
    base::FrameRef whole_;
    base::FrameRef run_;  ///< prefixes included

    // The frame that is cut off: first its prefix, then its memory, or, while there is none, the
    // bytes of a large one that came with the prefix.
    std::array<std::byte, kPrefixBytes> prefix_;
    std::size_t prefix_have_ = 0;
    base::FrameRef partial_;
    std::size_t partial_have_ = 0;
    base::FrameRef early_;

    std::uint64_t moved_ = 0;
};

}  // namespace kaas::net
