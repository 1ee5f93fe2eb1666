// Goal: results carry their error through, and ids of different kinds stay apart.
#include "base/result.h"

#include "base/ids.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <concepts>
#include <cstdint>
#include <string>

namespace kaas::base {
namespace {

enum class Code { kBad, kWorse };

Result<int, Code> parse(bool good) {
    if (!good) return fail(Code::kWorse, "file 7");
    return 5;
}

Result<std::string, Code> use(bool good) {
    KAAS_TRY_ASSIGN(number, parse(good));
    return std::to_string(number);
}

TEST(Result, TryAssignGivesTheValueOrReturnsTheError) {
    EXPECT_EQ(use(true).value(), "5");
    EXPECT_EQ(use(false).error(), (Error<Code>{Code::kWorse, "file 7"}));
}

TEST(Ids, DoNotMixAndDoArithmetic) {
    static_assert(!std::convertible_to<Offset, LeaderEpoch>);
    static_assert(!std::convertible_to<std::int64_t, Offset>);
    Offset offset{10};
    EXPECT_EQ((offset + 5).value(), 15);
    EXPECT_EQ(Offset{15} - offset, 5);
    EXPECT_LT(offset, Offset{11});
    EXPECT_EQ(fmt::format("{}", offset), "10");
}

}  // namespace
}  // namespace kaas::base
