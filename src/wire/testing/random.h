#pragma once

#include "wire/error_code.h"
#include "wire/types.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

namespace kaas::wire::testing {

/// Values of every type, edges more often than chance would. The same seed gives the same values.
class Random {
public:
    explicit Random(std::uint64_t seed) : engine_(seed) {}

    /// True once in `n` times.
    bool chance(std::uint32_t n) { return below(n) == 0; }
    std::uint32_t below(std::uint32_t n) {
        return std::uniform_int_distribution<std::uint32_t>(0, n - 1)(engine_);
    }
    /// Mostly small, sometimes the type's ends.
    std::int64_t integer(std::int64_t min, std::int64_t max);
    double real();
    std::string text();
    std::vector<std::byte> bytes();

private:
    std::mt19937_64 engine_;
};

template <class T>
    requires std::is_integral_v<T>
void fill(Random& random, T& to, std::int16_t) {
    to = static_cast<T>(
        random.integer(std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
}
inline void fill(Random& random, bool& to, std::int16_t) { to = random.chance(2); }
inline void fill(Random& random, double& to, std::int16_t) { to = random.real(); }
void fill(Random& random, Uuid& to, std::int16_t);
void fill(Random& random, ErrorCode& to, std::int16_t);
void fill(Random& random, String& to, std::int16_t);
void fill(Random& random, Bytes& to, std::int16_t);
/// The bytes that the records borrow are kept for ever: tests are short.
void fill_records(Random& random, Records& to, bool may_be_null);
/// Now and then a few tags above those that the struct knows.
void fill_tags(Random& random, UnknownTags& to, std::uint32_t first);

template <class T>
void fill(Random& random, std::vector<T>& to, std::int16_t version) {
    to.clear();
    for (std::uint32_t left = random.below(4); left > 0; --left) {
        fill(random, to.emplace_back(), version);
    }
}

template <class T>
void fill_nullable(Random& random, std::optional<T>& to, std::int16_t version, bool may_be_null) {
    if (may_be_null && random.chance(4)) return to.reset();
    fill(random, to.emplace(), version);
}

}  // namespace kaas::wire::testing
