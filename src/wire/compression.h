#pragma once

#include "base/bytes.h"
#include "wire/error.h"
#include "wire/types.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace kaas::wire {

/// What the records of a batch are packed with: the low three bits of its attributes.
enum class Compression : std::uint8_t { kNone = 0, kGzip = 1, kSnappy = 2, kLz4 = 3, kZstd = 4 };

/// Apache's names: none, gzip, snappy, lz4, zstd. "unknown" for the three ids that nobody uses.
[[nodiscard]] std::string_view to_string(Compression codec);

/// Far above what any producer packs into one batch, far below what hurts a broker.
inline constexpr std::size_t kUnpackedBytesMax = std::size_t{256} << 20;

/// Unpacks `packed`. Snappy in both forms that producers send: xerial's framing and a bare block.
/// Errors: kCompression for bytes that the codec refuses or an unknown codec; kTooLarge for more
/// than `limit_bytes` of output, of which no more than twice the limit is ever allocated.
[[nodiscard]] Result<std::vector<std::byte>> decompress(
    Compression codec, ByteView packed, std::size_t limit_bytes = kUnpackedBytesMax);

/// Packs as the Java client does (snappy in xerial's framing, gzip, lz4 and zstd frames). `level`
/// is Kafka's `compression.<codec>.level`, within its bounds; without one, the client's default.
[[nodiscard]] std::vector<std::byte> compress(Compression codec, ByteView plain,
                                              std::optional<int> level = std::nullopt);

}  // namespace kaas::wire
