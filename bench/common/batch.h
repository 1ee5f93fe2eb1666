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
inline constexpr size_t kBatchProducerIdAt = 43;
inline constexpr size_t kBatchProducerEpochAt = 51;
inline constexpr size_t kBatchBaseSequenceAt = 53;
inline constexpr size_t kBatchHeaderSize = 61;
/// Base offset and length stand before what the length counts.
inline constexpr size_t kBatchLengthPrefix = 12;

/// CRC32C of everything from the attributes on, as the batch's header carries it.
uint32_t batch_crc(std::string_view batch);

/// An uncompressed v2 batch of `records` records, each with `value_bytes` of random value, stamped
/// with the time of the call, without a producer id. The CRC is right.
std::string make_batch(int records, size_t value_bytes, uint64_t seed);

/// Who writes a batch, and which of its records comes first.
struct BatchProducer {
    int64_t id = -1;
    int16_t epoch = -1;
    int32_t base_sequence = -1;
};

/// Makes a batch one of a transaction of this producer; the CRC is right again.
void make_transactional(std::string& batch, const BatchProducer& producer);

}  // namespace kaas::bench
