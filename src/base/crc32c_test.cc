// Goal: CRC-32C gives the published values (RFC 3720 B.4), whole or in pieces.
#include "base/crc32c.h"

#include "base/bytes.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace kaas::base {
namespace {

TEST(Crc32c, GivesTheCheckValue) { EXPECT_EQ(crc32c(as_bytes("123456789")), 0xE3069283U); }

TEST(Crc32c, GivesTheValuesOfRfc3720) {
    std::array<std::byte, 32> block{};
    EXPECT_EQ(crc32c(block), 0x8A9136AAU);
    block.fill(std::byte{0xFF});
    EXPECT_EQ(crc32c(block), 0x62A8AB43U);
    for (std::size_t i = 0; i < block.size(); ++i) block[i] = static_cast<std::byte>(i);
    EXPECT_EQ(crc32c(block), 0x46DD794EU);
    for (std::size_t i = 0; i < block.size(); ++i) block[i] = static_cast<std::byte>(31 - i);
    EXPECT_EQ(crc32c(block), 0x113FDB5CU);
}

TEST(Crc32c, GoesOnFromASeed) {
    std::string text(1000, 'k');
    for (std::size_t cut : {0UL, 1UL, 7UL, 64UL, 999UL, 1000UL}) {
        std::string_view view = text;
        std::uint32_t first = crc32c(as_bytes(view.substr(0, cut)));
        EXPECT_EQ(crc32c(as_bytes(view.substr(cut)), first), crc32c(as_bytes(view))) << cut;
    }
}

TEST(Crc32c, OfNothingIsZero) { EXPECT_EQ(crc32c({}), 0U); }

}  // namespace
}  // namespace kaas::base
