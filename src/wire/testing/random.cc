#include "wire/testing/random.h"

#include "wire/error_code.h"
#include "wire/types.h"

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <list>
#include <random>
#include <string>
#include <vector>

namespace kaas::wire::testing {
namespace {

// With what JSON must escape and what UTF-8 makes long.
constexpr const char* kPieces[] = {"a", "Z", "9", "-", "\"", "\\", "\n", "é", "漢", "🐛"};

}  // namespace

std::int64_t Random::integer(std::int64_t min, std::int64_t max) {
    switch (below(6)) {
        case 0: return min;
        case 1: return max;
        case 2: return std::uniform_int_distribution<std::int64_t>(min, max)(engine_);
        default: return std::uniform_int_distribution<std::int64_t>(min < 0 ? -1 : 0, 100)(engine_);
    }
}

double Random::real() {
    for (;;) {
        auto value = std::bit_cast<double>(engine_());
        if (std::isfinite(value)) return value;
    }
}

std::string Random::text() {
    std::string result;
    // Rarely long enough for a longer varint.
    for (std::uint32_t left = chance(20) ? 100 + below(100) : below(10); left > 0; --left) {
        result += kPieces[below(std::size(kPieces))];
    }
    return result;
}

std::vector<std::byte> Random::bytes() {
    std::vector<std::byte> result(chance(20) ? below(20'000) : below(20));
    for (auto& b : result) b = static_cast<std::byte>(below(256));
    return result;
}

void fill(Random& random, Uuid& to, std::int16_t) {
    for (auto& b : to.bytes) b = static_cast<std::uint8_t>(random.below(256));
}

void fill(Random& random, ErrorCode& to, std::int16_t) {
    to = ErrorCode(static_cast<std::int16_t>(random.integer(-1, 136)));
}

void fill(Random& random, String& to, std::int16_t) { to = random.text(); }

void fill(Random& random, Bytes& to, std::int16_t) { to = Bytes(random.bytes()); }

void fill_records(Random& random, Records& to, bool may_be_null) {
    static std::list<std::vector<std::byte>> kept;
    if (may_be_null && random.chance(4)) {
        to = {};
    } else {
        to = Records::in_frame(kept.emplace_back(random.bytes()));
    }
}

void fill_tags(Random& random, UnknownTags& to, std::uint32_t first) {
    if (!random.chance(4)) return;
    for (std::uint32_t left = 1 + random.below(3); left > 0; --left) {
        first += 1 + random.below(random.chance(4) ? 100'000 : 3);
        to.add(first, Bytes(random.bytes()));
    }
}

}  // namespace kaas::wire::testing
