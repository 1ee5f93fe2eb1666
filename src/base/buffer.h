#pragma once

#include "base/bytes.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

namespace kaas::base {

/// Bounds the memory that requests in flight may hold (`queued.max.request.bytes`).
/// Thread: any.
class MemoryBudget {
public:
    /// `on_release` is called by `release`, on its thread, once for each `expect_release`. It must
    /// not block.
    explicit MemoryBudget(std::size_t limit_bytes, std::function<void()> on_release = {})
        : limit_(limit_bytes), on_release_(std::move(on_release)) {}

    /// Takes `bytes` if they fit, or if nothing at all is held: one request always fits.
    [[nodiscard]] bool try_reserve(std::size_t bytes);
    void release(std::size_t bytes);
    /// Asks to be told of the next release. Try to reserve once more after it: what was released
    /// before is not told.
    void expect_release() { expected_.store(true); }

    [[nodiscard]] std::size_t used() const { return used_.load(std::memory_order_relaxed); }
    [[nodiscard]] std::size_t limit() const { return limit_; }

private:
    const std::size_t limit_;
    const std::function<void()> on_release_;
    std::atomic<std::size_t> used_ = 0;
    std::atomic<bool> expected_ = false;
};

/// Counted memory that frames are slices of. Freed, and its budget given back, with the last
/// reference. Thread: references may be copied and dropped on any thread; the bytes have one writer
/// at a time by agreement of the holders (the reactor until append, the commit thread after).
class Block {
public:
    /// `budget` may be null; otherwise `bytes` must have been reserved in it, and the budget must
    /// outlive the block.
    [[nodiscard]] static class BlockRef allocate(std::size_t bytes, MemoryBudget* budget = nullptr);

    [[nodiscard]] std::byte* data() { return reinterpret_cast<std::byte*>(this + 1); }
    [[nodiscard]] std::size_t capacity() const { return capacity_; }

private:
    friend class BlockRef;
    Block(std::size_t capacity, MemoryBudget* budget) : capacity_(capacity), budget_(budget) {}
    static void destroy(Block* block);

    std::atomic<std::uint32_t> references_ = 1;
    const std::size_t capacity_;
    MemoryBudget* const budget_;
};

/// A counted reference to a `Block`.
class BlockRef {
public:
    BlockRef() = default;
    BlockRef(const BlockRef& other) : block_(other.block_) {
        if (block_ != nullptr) block_->references_.fetch_add(1, std::memory_order_relaxed);
    }
    BlockRef(BlockRef&& other) noexcept : block_(std::exchange(other.block_, nullptr)) {}
    BlockRef& operator=(BlockRef other) noexcept {
        std::swap(block_, other.block_);
        return *this;
    }
    ~BlockRef() {
        if (block_ != nullptr && block_->references_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
            Block::destroy(block_);
        }
    }

    explicit operator bool() const { return block_ != nullptr; }
    [[nodiscard]] Block* get() const { return block_; }
    Block* operator->() const { return block_; }
    /// True when no other reference exists: the holder may reuse the memory.
    [[nodiscard]] bool unique() const {
        return block_ != nullptr && block_->references_.load(std::memory_order_acquire) == 1;
    }

private:
    friend class Block;
    explicit BlockRef(Block* block) : block_(block) {}
    Block* block_ = nullptr;
};

/// One request frame (without its length prefix): bytes, and a share in the block that holds them.
/// Views in a request decoded from it live exactly as long as some copy of its `FrameRef`.
struct FrameRef {
    BlockRef block;
    MutableBytes bytes;
};

}  // namespace kaas::base
