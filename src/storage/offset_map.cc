#include "storage/offset_map.h"

#include "base/assert.h"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <random>

namespace kaas::storage {
namespace {

[[nodiscard]] std::uint64_t load_le(const std::byte* from) {
    static_assert(std::endian::native == std::endian::little);
    std::uint64_t value = 0;
    std::memcpy(&value, from, sizeof(value));
    return value;
}

struct SipState {
    std::uint64_t v0, v1, v2, v3;

    void rounds(int count) {
        for (int i = 0; i < count; ++i) {
            v0 += v1;
            v1 = std::rotl(v1, 13) ^ v0;
            v0 = std::rotl(v0, 32);
            v2 += v3;
            v3 = std::rotl(v3, 16) ^ v2;
            v0 += v3;
            v3 = std::rotl(v3, 21) ^ v0;
            v2 += v1;
            v1 = std::rotl(v1, 17) ^ v2;
            v2 = std::rotl(v2, 32);
        }
    }
    void add(std::uint64_t word) {
        v3 ^= word;
        rounds(2);
        v0 ^= word;
    }
    [[nodiscard]] std::uint64_t sum() const { return v0 ^ v1 ^ v2 ^ v3; }
};

}  // namespace

KeyHasher KeyHasher::random() {
    std::random_device device;
    const auto word = [&] { return std::uint64_t{device()} << 32 | device(); };
    return KeyHasher({word(), word()});
}

KeyHash KeyHasher::operator()(base::ByteView bytes) const {
    SipState state{.v0 = key_[0] ^ 0x736f6d6570736575,
                   .v1 = key_[1] ^ 0x646f72616e646f6d ^ 0xee,
                   .v2 = key_[0] ^ 0x6c7967656e657261,
                   .v3 = key_[1] ^ 0x7465646279746573};
    const auto size = bytes.size();
    for (; bytes.size() >= 8; bytes = bytes.subspan(8)) state.add(load_le(bytes.data()));
    std::byte last[8] = {};
    if (!bytes.empty()) std::memcpy(last, bytes.data(), bytes.size());
    state.add(load_le(last) | std::uint64_t{size} << 56);
    state.v2 ^= 0xee;
    state.rounds(4);
    const auto low = state.sum();
    state.v1 ^= 0xdd;
    state.rounds(4);
    return {.low = low, .high = state.sum()};
}

void OffsetMap::Free::operator()(Slot* slots) const { std::free(slots); }

void OffsetMap::reset(std::size_t slots) {
    KAAS_ASSERT(slots > 0);
    release();
    // Zeroed by the kernel where it is large: what no key touches costs no memory.
    table_.reset(static_cast<Slot*>(std::calloc(slots, sizeof(Slot))));
    KAAS_ASSERT(table_ != nullptr);
    slots_ = slots;
}

void OffsetMap::release() {
    table_.reset();
    slots_ = 0;
    size_ = 0;
}

OffsetMap::Slot& OffsetMap::slot_of(const KeyHash& hash) const {
    // The upper half of the product spreads the hash over any number of slots.
    auto at = static_cast<std::size_t>((static_cast<unsigned __int128>(hash.low) * slots_) >> 64);
    while (table_[at].offset_plus_one != 0 && table_[at].hash != hash) {
        if (++at == slots_) at = 0;
    }
    return table_[at];
}

void OffsetMap::put(base::ByteView key, base::Offset offset) {
    KAAS_ASSERT(size_ < slots_);
    const auto hash = hasher_(key);
    auto& slot = slot_of(hash);
    if (slot.offset_plus_one == 0) {
        slot.hash = hash;
        ++size_;
    }
    slot.offset_plus_one = offset.value() + 1;
}

base::Offset OffsetMap::get(base::ByteView key) const {
    if (size_ == 0) return base::Offset{-1};
    // A full map has no empty slot that would end the search for a key it does not know.
    KAAS_ASSERT(size_ < slots_);
    return base::Offset{slot_of(hasher_(key)).offset_plus_one - 1};
}

}  // namespace kaas::storage
