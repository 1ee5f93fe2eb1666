#pragma once

#include "base/bytes.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace kaas::wire::testing {

/// A fuzzer's bytes in memory of their own, exactly as long, so that a read past the end is seen.
class FuzzInput {
public:
    FuzzInput(const std::uint8_t* data, std::size_t size) : memory_(size) {
        if (size > 0) std::memcpy(memory_.data(), data, size);
        rest_ = memory_;
    }

    /// The next byte, 0 at the end.
    std::uint8_t byte() {
        if (rest_.empty()) return 0;
        auto value = std::to_integer<std::uint8_t>(rest_.front());
        rest_ = rest_.subspan(1);
        return value;
    }
    [[nodiscard]] std::vector<std::byte> rest() const { return {rest_.begin(), rest_.end()}; }

private:
    std::vector<std::byte> memory_;
    base::ByteView rest_;
};

}  // namespace kaas::wire::testing
