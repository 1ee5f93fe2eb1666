// Goal: a batch's header is believed only as far as its bytes and rules carry it.
// Method: one good batch, damaged one field at a time; rows are named by the fault.
#include "wire/record_batch.h"

#include "base/bytes.h"
#include "base/result.h"
#include "wire/error.h"
#include "wire/records.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <vector>

namespace kaas::wire {
namespace {

using Batch = std::vector<std::byte>;

Batch good_batch(BatchBuilder::Options options = {}) {
    BatchBuilder builder(options);
    for (int i = 0; i < 3; ++i)
        builder.add(1000 + i, base::as_bytes("key"), base::as_bytes("value"));
    return builder.build();
}

template <class T>
void put(Batch& batch, std::size_t at, T value) {
    base::store_be(batch.data() + at, value);
}

TEST(RecordBatch, HeaderFieldsAsWritten) {
    Batch batch = good_batch({.base_offset = 7,
                              .partition_leader_epoch = 5,
                              .producer_id = 9,
                              .producer_epoch = 2,
                              .base_sequence = 11,
                              .transactional = true});
    auto view = first_batch(batch);
    ASSERT_TRUE(view) << view.error().context;
    const BatchHeader& header = view->header;
    EXPECT_EQ(header.base_offset, 7);
    EXPECT_EQ(header.last_offset(), 9);
    EXPECT_EQ(header.size(), batch.size());
    EXPECT_EQ(header.partition_leader_epoch, 5);
    EXPECT_EQ(header.base_timestamp, 1000);
    EXPECT_EQ(header.max_timestamp, 1002);
    EXPECT_EQ(header.producer_id, 9);
    EXPECT_EQ(header.producer_epoch, 2);
    EXPECT_EQ(header.base_sequence, 11);
    EXPECT_EQ(header.last_sequence(), 13);
    EXPECT_EQ(header.count, 3);
    EXPECT_TRUE(header.transactional());
    EXPECT_FALSE(header.control());
    EXPECT_TRUE(check_crc(*view));
    EXPECT_TRUE(check_from_client(header));
}

TEST(RecordBatch, SequenceWrapsToZero) {
    constexpr std::int32_t kMax = std::numeric_limits<std::int32_t>::max();
    EXPECT_EQ(sequence_after(kMax, 1), 0);
    EXPECT_EQ(sequence_after(kMax - 1, 3), 1);
    EXPECT_EQ(sequence_after(5, 0), 5);
}

struct Damage {
    const char* name;
    std::function<void(Batch&)> apply;
    CodecError expected;
};

class DamagedBatch : public ::testing::TestWithParam<Damage> {};

Result<void> check_all(const Batch& batch) {
    KAAS_TRY_ASSIGN(view, first_batch(batch));
    KAAS_TRY(check_crc(view));
    return check_from_client(view.header);
}

void seal(Batch& batch) {
    auto view = first_batch(batch);
    if (!view) return;
    Batch copy = batch;
    // The simplest way to a right checksum: what set_log_append_time computes, on a copy without
    // it.
    auto attributes = base::load_be<std::uint16_t>(batch.data() + 21);
    auto timestamp = base::load_be<std::int64_t>(batch.data() + 35);
    if ((attributes & 8) == 0) attributes |= 8;
    put(copy, 21, attributes);
    set_log_append_time(copy, timestamp);
    batch = copy;
}

TEST_P(DamagedBatch, IsRefused) {
    Batch batch = good_batch({.producer_id = 1, .producer_epoch = 0, .base_sequence = 0});
    GetParam().apply(batch);
    auto result = check_all(batch);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, GetParam().expected) << result.error().context;
}

INSTANTIATE_TEST_SUITE_P(
    RecordBatch, DamagedBatch,
    ::testing::Values(
        Damage{"Empty", [](Batch& b) { b.clear(); }, CodecError::kTruncated},
        Damage{"OneByteOfHeaderMissing", [](Batch& b) { b.resize(60); }, CodecError::kTruncated},
        Damage{"LastByteMissing", [](Batch& b) { b.pop_back(); }, CodecError::kTruncated},
        Damage{"NegativeLength", [](Batch& b) { put<std::int32_t>(b, 8, -1); },
               CodecError::kCorrupt},
        Damage{"LengthBelowAnyFormat", [](Batch& b) { put<std::int32_t>(b, 8, 13); },
               CodecError::kCorrupt},
        Damage{"LengthBelowTheHeader", [](Batch& b) { put<std::int32_t>(b, 8, 48); },
               CodecError::kCorrupt},
        Damage{"LengthOfTwoGigabytes",
               [](Batch& b) { put(b, 8, std::numeric_limits<std::int32_t>::max()); },
               CodecError::kTruncated},
        Damage{"OldMagic", [](Batch& b) { put<std::int8_t>(b, 16, 1); },
               CodecError::kUnsupportedMagic},
        Damage{"UnknownMagic", [](Batch& b) { put<std::int8_t>(b, 16, 3); }, CodecError::kCorrupt},
        Damage{"NegativeMagic", [](Batch& b) { put<std::int8_t>(b, 16, -1); },
               CodecError::kCorrupt},
        Damage{"ChecksumOff", [](Batch& b) { b[17] ^= std::byte{1}; }, CodecError::kCorrupt},
        Damage{"PayloadBitFlipped", [](Batch& b) { b.back() ^= std::byte{1}; },
               CodecError::kCorrupt},
        Damage{"AttributesBitFlipped", [](Batch& b) { b[22] ^= std::byte{1}; },
               CodecError::kCorrupt},
        Damage{"CountAboveOffsets",
               [](Batch& b) {
                   put<std::int32_t>(b, 57, 4);
                   seal(b);
               },
               CodecError::kInvalid},
        Damage{"CountBelowOffsets",
               [](Batch& b) {
                   put<std::int32_t>(b, 57, 2);
                   seal(b);
               },
               CodecError::kInvalid},
        Damage{"NoRecords",
               [](Batch& b) {
                   put<std::int32_t>(b, 57, 0);
                   seal(b);
               },
               CodecError::kInvalid},
        Damage{"NegativeLastOffsetDelta",
               [](Batch& b) {
                   put<std::int32_t>(b, 23, -1);
                   seal(b);
               },
               CodecError::kInvalid},
        Damage{"OverflowingLastOffsetDelta",
               [](Batch& b) {
                   put(b, 23, std::numeric_limits<std::int32_t>::max());
                   put(b, 57, std::numeric_limits<std::int32_t>::min());
                   seal(b);
               },
               CodecError::kInvalid},
        Damage{"ControlBatchFromAClient",
               [](Batch& b) {
                   put<std::uint16_t>(b, 21, 0x20);
                   seal(b);
               },
               CodecError::kInvalid},
        Damage{"ProducerIdWithoutSequence",
               [](Batch& b) {
                   put<std::int32_t>(b, 53, -1);
                   seal(b);
               },
               CodecError::kInvalid},
        Damage{"UnknownCodec",
               [](Batch& b) {
                   put<std::uint16_t>(b, 21, 5);
                   seal(b);
               },
               CodecError::kCompression}),
    [](const auto& info) { return info.param.name; });

TEST(RecordBatch, OffsetAndEpochAreOutsideTheChecksum) {
    Batch batch = good_batch();
    set_base_offset(batch, 123456789);
    set_partition_leader_epoch(batch, 42);
    auto view = first_batch(batch);
    ASSERT_TRUE(view);
    EXPECT_EQ(view->header.base_offset, 123456789);
    EXPECT_EQ(view->header.partition_leader_epoch, 42);
    EXPECT_TRUE(check_crc(*view));
}

TEST(RecordBatch, LogAppendTimeIsStampedAndChecksummed) {
    Batch batch = good_batch();
    set_log_append_time(batch, 5000);
    auto view = first_batch(batch);
    ASSERT_TRUE(view);
    EXPECT_EQ(view->header.timestamp_type(), TimestampType::kLogAppendTime);
    EXPECT_EQ(view->header.max_timestamp, 5000);
    EXPECT_TRUE(check_crc(*view));
}

TEST(RecordBatch, DeleteHorizonLiesInTheBaseTimestamp) {
    EXPECT_EQ((BatchHeader{.base_timestamp = 77}.delete_horizon_ms()), std::nullopt);
    EXPECT_EQ((BatchHeader{.attributes = 0x40, .base_timestamp = 77}.delete_horizon_ms()), 77);
}

}  // namespace
}  // namespace kaas::wire
