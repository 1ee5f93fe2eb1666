#pragma once

#include "base/log.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <string>
#include <utility>

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

/// Takes away one rule after the other: one of the first `seeds` histories must show it, or the
/// simulation tests nothing.
template <class Simulation, class Mutant>
void expect_caught(std::uint64_t seeds,
                   std::initializer_list<std::pair<Mutant, const char*>> mutants) {
    for (const auto& [mutant, name] : mutants) {
        std::uint64_t seed = 0;
        while (seed < seeds && !Simulation(seed, mutant).run()) ++seed;
        EXPECT_LT(seed, seeds) << name << " went unnoticed";
    }
}

/// Warnings of what a simulation does to the log would drown the tests' own words.
class QuietLog {
public:
    QuietLog() { base::log::configure({.level = base::log::Level::kError}); }
    ~QuietLog() { base::log::configure({}); }
};

}  // namespace kaas::storage::testing
