// Goal: the map that decides which records live knows every key's last offset, up to its limit, and
// its hash is the one it claims to be.
#include "storage/offset_map.h"

#include "base/bytes.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace kaas::storage {
namespace {

TEST(KeyHasherTest, IsSipHash) {
    // Key 00 01 .. 0f, messages of 0, 1, 8, 15 bytes 00 01 ..: `vectors_sip128` of the reference,
    // each half read as a little-endian number. `openssl mac SIPHASH` gives the same.
    const KeyHasher hasher({0x0706050403020100, 0x0f0e0d0c0b0a0908});
    std::vector<std::byte> message;
    for (int i = 0; i < 15; ++i) message.push_back(static_cast<std::byte>(i));
    const auto hash = [&](std::size_t size) { return hasher(base::ByteView(message).first(size)); };
    EXPECT_EQ(hash(0), (KeyHash{0xe6a825ba047f81a3, 0x930255c71472f66d}));
    EXPECT_EQ(hash(1), (KeyHash{0x44af996bd8c187da, 0x45fc229b11597634}));
    EXPECT_EQ(hash(8), (KeyHash{0x61f55862baa9623b, 0xb49714f364e2830f}));
    EXPECT_EQ(hash(15), (KeyHash{0x11a8b03399e99354, 0xd9c3cf970fec087e}));
}

TEST(OffsetMapTest, KnowsTheLastOffsetOfEveryKey) {
    OffsetMap map(KeyHasher::random());
    map.reset(2'000);
    std::map<std::string, std::int64_t> model;
    std::mt19937_64 random(7);
    for (std::int64_t offset = 0; offset < 20'000; ++offset) {
        const auto key = "key-" + std::to_string(random() % 1'900);
        map.put(base::as_bytes(key), base::Offset{offset});
        model[key] = offset;
    }
    EXPECT_EQ(map.size(), model.size());
    for (const auto& [key, offset] : model) {
        EXPECT_EQ(map.get(base::as_bytes(key)), base::Offset{offset});
    }
    EXPECT_EQ(map.get(base::as_bytes("nobody")), base::Offset{-1});
}

TEST(OffsetMapTest, HoldsAllButOneOfItsSlots) {
    OffsetMap map(KeyHasher({1, 2}));
    map.reset(64);
    for (int i = 0; i < 63; ++i) map.put(base::as_bytes(std::to_string(i)), base::Offset{i});
    for (int i = 0; i < 63; ++i) {
        EXPECT_EQ(map.get(base::as_bytes(std::to_string(i))), base::Offset{i});
    }
    EXPECT_EQ(map.get(base::as_bytes("64")), base::Offset{-1});
}

TEST(OffsetMapTest, ResetForgets) {
    OffsetMap map(KeyHasher({1, 2}));
    map.reset(8);
    map.put(base::as_bytes("a"), base::Offset{0});
    map.reset(4);
    EXPECT_EQ(map.size(), 0u);
    EXPECT_EQ(map.get(base::as_bytes("a")), base::Offset{-1});
    map.release();
    EXPECT_EQ(map.slots(), 0u);
}

TEST(OffsetMapTest, TheEmptyKeyIsAKey) {
    OffsetMap map(KeyHasher({1, 2}));
    map.reset(4);
    map.put({}, base::Offset{5});
    EXPECT_EQ(map.get({}), base::Offset{5});
}

}  // namespace
}  // namespace kaas::storage
