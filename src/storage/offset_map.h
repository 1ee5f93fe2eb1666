#pragma once

#include "base/bytes.h"
#include "base/ids.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace kaas::storage {

/// A key's place in an `OffsetMap`.
struct KeyHash {
    std::uint64_t low;
    std::uint64_t high;

    friend bool operator==(const KeyHash&, const KeyHash&) = default;
};

/// SipHash-2-4 with 128 bits of output (Aumasson and Bernstein; the reference's vectors hold).
/// Keyed, so that nobody who only chooses record keys can make two of them meet.
class KeyHasher {
public:
    explicit KeyHasher(const std::array<std::uint64_t, 2>& key) : key_(key) {}
    /// Under a key of its own, which nobody knows.
    [[nodiscard]] static KeyHasher random();

    [[nodiscard]] KeyHash operator()(base::ByteView bytes) const;

private:
    std::array<std::uint64_t, 2> key_;
};

/// The last offset of each key of a part of a log, in memory of a fixed size: 24 bytes a key,
/// whatever the keys' length, as Apache's `SkimpyOffsetMap`.
///
/// Collisions: keys are known by 128 bits of keyed hash alone. Two keys that meet count as one, and
/// the older record goes; among four thousand million keys that happens once in 10^19 maps.
/// Thread: one at a time.
class OffsetMap {
public:
    static constexpr std::size_t kBytesPerSlot = 24;

    explicit OffsetMap(KeyHasher hasher) : hasher_(hasher) {}

    /// Makes it empty, with room for `slots` keys. Memory is taken here.
    void reset(std::size_t slots);
    /// Gives the memory back.
    void release();

    /// Requires: `size() < slots()`.
    void put(base::ByteView key, base::Offset offset);
    /// -1 when the key is unknown.
    [[nodiscard]] base::Offset get(base::ByteView key) const;

    [[nodiscard]] std::size_t size() const { return size_; }
    [[nodiscard]] std::size_t slots() const { return slots_; }

private:
    struct Slot {
        KeyHash hash;
        std::int64_t offset_plus_one;  ///< 0: empty, so that fresh memory is an empty map
    };
    static_assert(sizeof(Slot) == kBytesPerSlot);
    struct Free {
        void operator()(Slot* slots) const;
    };

    /// Where the hash stands, or the empty slot where it would.
    [[nodiscard]] Slot& slot_of(const KeyHash& hash) const;

    KeyHasher hasher_;
    std::unique_ptr<Slot[], Free> table_;
    std::size_t slots_ = 0;
    std::size_t size_ = 0;
};

}  // namespace kaas::storage
