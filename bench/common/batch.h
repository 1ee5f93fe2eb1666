#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace kaas::bench {

/// Where the fields of a v2 record batch stand (Apache: DefaultRecordBatch).
inline constexpr size_t kBatchBaseOffsetAt = 0;
inline constexpr size_t kBatchLengthAt = 8;
inline constexpr size_t kBatchLeaderEpochAt = 12;
inline constexpr size_t kBatchMagicAt = 16;
inline constexpr size_t kBatchCrcAt = 17;
inline constexpr size_t kBatchAttributesAt = 21;
inline constexpr size_t kBatchLastOffsetDeltaAt = 23;
inline constexpr size_t kBatchHeaderSize = 61;
/// Base offset and length stand before what the length counts.
inline constexpr size_t kBatchLengthPrefix = 12;

/// CRC32C of everything from the attributes on, as the batch's header carries it.
uint32_t batch_crc(std::string_view batch);

/// An uncompressed v2 batch of `records` records, each with `value_bytes` of random value, stamped
/// with the time of the call, without a producer id. The CRC is right.
std::string make_batch(int records, size_t value_bytes, uint64_t seed);

}  // namespace kaas::bench
