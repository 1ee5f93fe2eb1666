#include "net/frame_memory.h"

#include "base/assert.h"
#include "base/buffer.h"
#include "base/bytes.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

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

bool SlabSource::ensure() {
    if (slab_.unique()) filled_ = 0;
    if (slab_ && filled_ + kRoomMin + kSmallFrameMax <= kSlabBytes) return true;
    base::BlockRef next = take_spare();
    if (!next && home_ == nullptr) {
        next = base::Block::allocate(kSlabBytes);
        home_ = next.get();
    }
    if (!next) next = memory_.allocate(kSlabBytes, false);
    if (!next) return false;
    if (slab_) spares_.push_back(std::move(slab_));
    if (spares_.size() > kSparesMax) {
        spares_.erase(spares_.begin() + (spares_.front().get() == home_ ? 1 : 0));
    }
    slab_ = std::move(next);
    filled_ = 0;
    return true;
}

base::BlockRef SlabSource::take_spare() {
    auto spare = std::ranges::find_if(spares_, &base::BlockRef::unique);
    if (spare == spares_.end()) return {};
    base::BlockRef block = std::move(*spare);
    spares_.erase(spare);
    return block;
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
    spares_.push_back(std::move(slab_));
    slab_ = {};
    std::erase_if(spares_, [this](const base::BlockRef& block) {
        if (block && !block.unique()) return false;
        if (block && block.get() == home_) home_ = nullptr;
        return true;
    });
}

}  // namespace kaas::net
