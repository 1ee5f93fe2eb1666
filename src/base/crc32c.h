#pragma once

#include "base/bytes.h"

#include <cstdint>

namespace kaas::base {

/// CRC-32C (Castagnoli), as in RFC 3720 appendix B.4 and Kafka's v2 batches.
/// Pass an earlier result as `seed` to go on over further bytes.
[[nodiscard]] std::uint32_t crc32c(ByteView bytes, std::uint32_t seed = 0);

}  // namespace kaas::base
