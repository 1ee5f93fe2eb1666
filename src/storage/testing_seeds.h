#pragma once

#include "base/log.h"

#include <cstdint>
#include <cstdlib>
#include <string>

namespace kaas::storage::testing {

/// Which seeds a simulation runs: so many as it says by itself, `KAAS_SEEDS` of them when that is
/// set (`./dev test --long` does), or the one of `KAAS_SEED`, to replay what failed.
struct Seeds {
    std::uint64_t first = 0;
    std::uint64_t end = 0;

    [[nodiscard]] static Seeds from_environment(std::uint64_t usual) {
        if (const char* one = std::getenv("KAAS_SEED"); one != nullptr) {
            const std::uint64_t seed = std::stoull(one);
            return {.first = seed, .end = seed + 1};
        }
        const char* many = std::getenv("KAAS_SEEDS");
        return {.first = 0, .end = many != nullptr ? std::stoull(many) : usual};
    }
};

/// Warnings of what a simulation does to the log would drown the tests' own words.
class QuietLog {
public:
    QuietLog() { base::log::configure({.level = base::log::Level::kError}); }
    ~QuietLog() { base::log::configure({}); }
};

}  // namespace kaas::storage::testing
