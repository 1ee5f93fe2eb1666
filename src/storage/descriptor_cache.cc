#include "storage/descriptor_cache.h"

#include "base/assert.h"
#include "base/mutex.h"

#include <atomic>
#include <cstddef>
#include <utility>

namespace kaas::storage {
namespace {

/// So many files in use are passed over before the limit gives way.
constexpr int kTries = 8;

}  // namespace

void DescriptorCache::insert(Member& member) {
    KAAS_ASSERT(member.state_ != Member::State::kIn);
    member.state_ = Member::State::kIn;
    member.place_ = ring_.size();
    member.touch();
    ring_.push_back(&member);
}

void DescriptorCache::erase(Member& member) {
    ring_[member.place_] = ring_.back();
    ring_[member.place_]->place_ = member.place_;
    ring_.pop_back();
    member.state_ = Member::State::kOut;
}

void DescriptorCache::enter(Member& member) {
    bool too_many = false;
    {
        base::MutexLock lock(mutex_);
        // While a sync was to close it, somebody opened it anew.
        while (member.state_ == Member::State::kClosing) closed_.wait(mutex_);
        if (member.state_ == Member::State::kOut) insert(member);
        too_many = ring_.size() > limit_;
    }
    // More than one, to make up for those that were all in use.
    for (int tries = 0; too_many && tries < kTries; ++tries) too_many = close_one() && full();
}

void DescriptorCache::leave(Member& member) {
    base::MutexLock lock(mutex_);
    KAAS_ASSERT(member.state_ != Member::State::kClosing);  // its owner is kept meanwhile
    if (member.state_ == Member::State::kIn) erase(member);
}

bool DescriptorCache::close_a_clean_one() {
    // Twice round: the first time takes away the second chances.
    for (std::size_t steps = 2 * ring_.size(); steps > 0; --steps) {
        if (++hand_ >= ring_.size()) hand_ = 0;
        Member& member = *ring_[hand_];
        if (member.used_.exchange(false, std::memory_order_relaxed) || !member.close_clean())
            continue;
        erase(member);
        return true;
    }
    return false;
}

DescriptorCache::Taken DescriptorCache::take_a_dirty_one() {
    for (std::size_t steps = 2 * ring_.size(); steps > 0; --steps) {
        if (++hand_ >= ring_.size()) hand_ = 0;
        Member& member = *ring_[hand_];
        if (member.used_.exchange(false, std::memory_order_relaxed)) continue;
        auto owner = member.owner();
        if (owner == nullptr) continue;
        erase(member);
        member.state_ = Member::State::kClosing;
        return {.member = &member, .owner = std::move(owner)};
    }
    return {};
}

bool DescriptorCache::close_one() {
    {
        base::MutexLock lock(mutex_);
        if (close_a_clean_one()) return true;
    }
    for (int tries = 0; tries < kTries; ++tries) {
        if (close_a_dirty_one()) return true;
    }
    return false;
}

bool DescriptorCache::close_a_dirty_one() {
    Taken dirty;  // let go without the lock: its end, when this is the last, calls `leave`
    {
        base::MutexLock lock(mutex_);
        dirty = take_a_dirty_one();
    }
    if (dirty.member == nullptr) return false;
    const bool closed = dirty.member->close_dirty();
    base::MutexLock lock(mutex_);
    dirty.member->state_ = Member::State::kOut;
    if (!closed) insert(*dirty.member);
    closed_.notify_all();
    return closed;
}

}  // namespace kaas::storage
