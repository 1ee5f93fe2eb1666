#include "base/buffer.h"

#include "base/assert.h"

#include <atomic>
#include <cstddef>
#include <new>

namespace kaas::base {

// Sequentially consistent, as `expected_` is: either `try_reserve` after `expect_release` sees what
// was released, or `release` sees that somebody waits.
bool MemoryBudget::try_reserve(std::size_t bytes) {
    std::size_t used = used_.load();
    do {
        bool fits = used <= limit_ && bytes <= limit_ - used;
        if (!fits && used != 0) return false;
    } while (!used_.compare_exchange_weak(used, used + bytes));
    return true;
}

void MemoryBudget::release(std::size_t bytes) {
    std::size_t before = used_.fetch_sub(bytes);
    KAAS_ASSERT(before >= bytes);
    if (expected_.load() && expected_.exchange(false) && on_release_) on_release_();
}

BlockRef Block::allocate(std::size_t bytes, MemoryBudget* budget) {
    void* memory = ::operator new(sizeof(Block) + bytes);
    return BlockRef(new (memory) Block(bytes, budget));
}

void Block::destroy(Block* block) {
    if (block->budget_ != nullptr) block->budget_->release(block->capacity_);
    block->~Block();
    ::operator delete(block);
}

}  // namespace kaas::base
