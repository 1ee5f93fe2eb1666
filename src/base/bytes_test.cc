// Goal: integers go to the wire in big-endian order, at any alignment.
#include "base/bytes.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace kaas::base {
namespace {

TEST(Bytes, StoresBigEndianUnaligned) {
    std::array<std::byte, 9> memory{};
    store_be<std::int64_t>(memory.data() + 1, 0x0102030405060708);
    for (int i = 1; i < 9; ++i) EXPECT_EQ(std::to_integer<int>(memory[i]), i);
    EXPECT_EQ(load_be<std::int64_t>(memory.data() + 1), 0x0102030405060708);
    EXPECT_EQ(load_be<std::int16_t>(memory.data() + 1), 0x0102);
}

TEST(Bytes, KeepsTheSign) {
    std::array<std::byte, 4> memory{};
    store_be<std::int32_t>(memory.data(), -2);
    EXPECT_EQ(load_be<std::int32_t>(memory.data()), -2);
    EXPECT_EQ(load_be<std::int8_t>(memory.data() + 3), -2);
}

}  // namespace
}  // namespace kaas::base
