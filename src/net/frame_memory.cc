#include "net/frame_memory.h"

#include "base/assert.h"
#include "base/buffer.h"
#include "base/bytes.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <utility>

namespace kaas::net {

FrameMemory::FrameMemory(std::size_t limit_bytes, std::function<void()> on_free)
    : budget_(limit_bytes, on_free), beyond_(0, on_free) {}

base::BlockRef FrameMemory::allocate(std::size_t bytes, bool waited) {
    if (auto block = try_allocate(bytes, waited)) return block;
    budget_.expect_release();
    beyond_.expect_release();
    return try_allocate(bytes, waited);
}

base::BlockRef FrameMemory::try_allocate(std::size_t bytes, bool waited) {
    if (budget_.try_reserve(bytes)) return base::Block::allocate(bytes, &budget_);
    if (waited && beyond_.try_reserve(bytes)) return base::Block::allocate(bytes, &beyond_);
    return {};
}

bool SlabSource::ensure(bool waited) {
    if (slab_.unique()) filled_ = 0;
    if (slab_ && filled_ + kRoomMin + kSmallFrameMax <= kSlabBytes) return true;
    auto spare =
        std::find_if(spares_.begin(), spares_.end(), [](auto& block) { return block.unique(); });
    base::BlockRef next;
    if (spare != spares_.end()) {
        next = std::move(*spare);
        spares_.erase(spare);
    } else {
        next = memory_.allocate(kSlabBytes, waited);
        if (!next) return false;
    }
    if (slab_) {
        if (spares_.size() == kSparesMax) spares_.erase(spares_.begin());
        spares_.push_back(std::move(slab_));
    }
    slab_ = std::move(next);
    filled_ = 0;
    return true;
}

base::MutableBytes SlabSource::room() const {
    return {slab_->data() + filled_, kSlabBytes - kSmallFrameMax - filled_};
}

base::MutableBytes SlabSource::take(std::size_t bytes) {
    base::MutableBytes taken{slab_->data() + filled_, bytes};
    extend(bytes);
    return taken;
}

void SlabSource::extend(std::size_t bytes) {
    KAAS_ASSERT(bytes <= left());
    filled_ += bytes;
}

void SlabSource::trim() {
    std::erase_if(spares_, [](auto& block) { return block.unique(); });
    if (slab_.unique()) slab_ = {};
}

}  // namespace kaas::net
