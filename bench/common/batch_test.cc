// Goal: the batches that are sent are ones a broker must accept.
#include "common/batch.h"

#include "common/bytes.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace kaas::bench {
namespace {

TEST(Batch, CrcIsTheOneOfTheStandardVector) {
    // RFC 3720 calls it CRC32C; "123456789" is the check value of every catalogue.
    const auto batch = std::string(kBatchAttributesAt, '\0') + "123456789";
    EXPECT_EQ(batch_crc(batch), 0xE3069283U);
}

TEST(Batch, HeaderTellsItsOwnSizeAndCount) {
    const auto batch = make_batch(16, 1024, 1);
    Reader reader(batch);
    reader.i64();
    EXPECT_EQ(static_cast<size_t>(reader.i32()), batch.size() - kBatchLengthPrefix);
    reader.i32();
    EXPECT_EQ(reader.i8(), 2);
    EXPECT_EQ(static_cast<uint32_t>(reader.i32()), batch_crc(batch));
    reader.i16();
    EXPECT_EQ(reader.i32(), 15);
    reader.skip(8 + 8 + 8 + 2 + 4);
    EXPECT_EQ(reader.i32(), 16);
    EXPECT_EQ(reader.position(), kBatchHeaderSize);
}

TEST(Batch, EqualShapesHaveEqualSizesWhateverTheSeed) {
    EXPECT_EQ(make_batch(3, 100, 1).size(), make_batch(3, 100, 2).size());
    EXPECT_NE(make_batch(3, 100, 1), make_batch(3, 100, 2));
}

TEST(Reader, RunningPastTheEndIsSeenAndHarmless) {
    Reader reader(std::string_view("\x00\x01\x02", 3));
    EXPECT_EQ(reader.i16(), 1);
    EXPECT_EQ(reader.i64(), 0);
    EXPECT_FALSE(reader.ok());
    EXPECT_EQ(reader.left(), 0U);
}

TEST(Reader, AnArrayLongerThanTheBytesLeftIsRefused) {
    Reader reader(std::string_view("\x7f", 1));
    EXPECT_EQ(reader.array(), 0U);
    EXPECT_FALSE(reader.ok());
}

TEST(Batch, ATransactionalBatchNamesItsProducerAndHasARightCrc) {
    auto batch = make_batch(2, 10, 1);
    make_transactional(batch, {.id = 0x1122, .epoch = 3, .base_sequence = 4});
    const std::string_view bytes(batch);
    EXPECT_EQ(Reader(bytes.substr(kBatchAttributesAt)).i16(), 0x10);
    EXPECT_EQ(Reader(bytes.substr(kBatchProducerIdAt)).i64(), 0x1122);
    EXPECT_EQ(Reader(bytes.substr(kBatchProducerEpochAt)).i16(), 3);
    EXPECT_EQ(Reader(bytes.substr(kBatchBaseSequenceAt)).i32(), 4);
    EXPECT_EQ(static_cast<uint32_t>(Reader(bytes.substr(kBatchCrcAt)).i32()), batch_crc(batch));
}

}  // namespace
}  // namespace kaas::bench
