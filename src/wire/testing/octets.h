#pragma once

#include "base/bytes.h"

#include <cstddef>
#include <initializer_list>
#include <vector>

/// Bytes as tests write them down and compare them: as numbers.
namespace kaas::wire::testing {

[[nodiscard]] inline std::vector<int> ints(base::ByteView bytes) {
    std::vector<int> result;
    for (std::byte b : bytes) result.push_back(std::to_integer<int>(b));
    return result;
}

[[nodiscard]] inline std::vector<std::byte> octets(std::initializer_list<int> values) {
    std::vector<std::byte> result;
    for (int v : values) result.push_back(static_cast<std::byte>(v));
    return result;
}

}  // namespace kaas::wire::testing
