// Goal: a batch packed anew holds the same records under the same header, and is refused where
// Apache refuses it. Method: every codec into every other.

#include "storage/repack.h"

#include "base/crc32c.h"
#include "base/metrics.h"
#include "storage/testing_log.h"
#include "wire/compression.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <tuple>
#include <vector>

namespace kaas::storage {
namespace {

using testing::make_batch;
using wire::Compression;

constexpr std::int64_t kNow = 1'700'000'000'500;
constexpr Compression kCodecs[] = {Compression::kNone, Compression::kGzip, Compression::kSnappy,
                                   Compression::kLz4, Compression::kZstd};

class RepackTest : public ::testing::Test {
protected:
    [[nodiscard]] static std::vector<std::byte> batch(Compression codec, std::int32_t records = 5) {
        return make_batch({.records = records,
                           .value_bytes = 300,
                           .producer_id = 7,
                           .producer_epoch = 1,
                           .sequence = 40,
                           .compression = codec});
    }
    [[nodiscard]] static LogConfig keep_as(Compression codec) {
        LogConfig config;
        config.compression = codec;
        return config;
    }
    [[nodiscard]] Result<Repacked> pack(std::vector<std::byte>& bytes, const LogConfig& config) {
        return repack(bytes, config, kNow, site_, &faults_);
    }
    [[nodiscard]] std::vector<wire::Record> records_of(const wire::BatchView& view) {
        std::vector<wire::Record> records;
        readers_.push_back(*wire::RecordReader::open(view, site_));
        wire::Record record;
        while (*readers_.back().next(record)) records.push_back(record);
        return records;
    }

    base::metrics::Registry metrics_;
    wire::DecodeSite site_{metrics_, "test"};
    std::vector<RecordFault> faults_;
    std::deque<wire::RecordReader> readers_;
};

TEST_F(RepackTest, EveryCodecComesIntoEveryOtherWithTheSameRecords) {
    for (const auto from : kCodecs) {
        for (const auto to : kCodecs) {
            auto bytes = batch(from);
            const auto original = bytes;
            EXPECT_EQ(must_repack(bytes, keep_as(to)), from != to);
            const auto packed = pack(bytes, keep_as(to));
            ASSERT_TRUE(packed) << packed.error().context;
            const auto before = *wire::first_batch(original);
            const auto after = *wire::first_batch(packed->frame.bytes);
            ASSERT_EQ(after.bytes.size(), packed->frame.bytes.size());
            EXPECT_TRUE(wire::check_crc(after));
            EXPECT_EQ(after.header.compression(), to);
            EXPECT_EQ(after.header.producer_id, 7);
            EXPECT_EQ(after.header.base_sequence, 40);
            EXPECT_EQ(after.header.max_timestamp, before.header.max_timestamp);
            EXPECT_EQ(records_of(after), records_of(before)) << wire::to_string(to);
        }
    }
}

TEST_F(RepackTest, ATopicThatKeepsWhatComesRepacksNothing) {
    EXPECT_FALSE(must_repack(batch(Compression::kZstd), LogConfig{}));
}

TEST_F(RepackTest, WhatGrowsAboveTheLimitIsRefused) {
    auto bytes = batch(Compression::kZstd);
    auto config = keep_as(Compression::kNone);
    config.max_message_bytes = 1000;
    ASSERT_LT(bytes.size(), 1000U);
    EXPECT_EQ(pack(bytes, config).error().code, ErrorCode::kTooLarge);
}

TEST_F(RepackTest, WhatWasAboveTheLimitIsRefusedEvenIfItWouldShrink) {
    auto bytes = batch(Compression::kNone);
    auto config = keep_as(Compression::kZstd);
    config.max_message_bytes = 1000;
    ASSERT_GT(bytes.size(), 1000U);
    EXPECT_EQ(pack(bytes, config).error().code, ErrorCode::kTooLarge);
}

TEST_F(RepackTest, TheAppendTimeIsStamped) {
    auto bytes = batch(Compression::kNone);
    auto config = keep_as(Compression::kLz4);
    config.timestamp_type = wire::TimestampType::kLogAppendTime;
    const auto packed = pack(bytes, config);
    ASSERT_TRUE(packed);
    EXPECT_EQ(packed->checked_ms, kNow);
    const auto after = *wire::first_batch(packed->frame.bytes);
    EXPECT_EQ(after.header.timestamp_type(), wire::TimestampType::kLogAppendTime);
    for (const auto& record : records_of(after)) EXPECT_EQ(record.timestamp_ms, kNow);
}

TEST_F(RepackTest, BytesThatAreNoRecordsAreRefused) {
    auto bytes = batch(Compression::kGzip);
    bytes[wire::BatchHeader::kBytes + 12] ^= std::byte{0xFF};
    base::store_be(bytes.data() + wire::BatchHeader::kCrcAt,
                   base::crc32c(base::ByteView(bytes).subspan(wire::BatchHeader::kCrcFrom)));
    EXPECT_FALSE(pack(bytes, keep_as(Compression::kNone)));
}

TEST_F(RepackTest, AHigherLevelPacksTighter) {
    std::string words;
    for (int i = 0; i < 4000; ++i) words += std::to_string(i * 7919 % 1000) + " ";
    for (const auto& [codec, low, high] :
         {std::tuple{Compression::kGzip, 1, 9}, std::tuple{Compression::kLz4, 1, 17},
          std::tuple{Compression::kZstd, -100, 22}}) {
        const auto plain = base::as_bytes(words);
        const auto loose = wire::compress(codec, plain, low);
        const auto tight = wire::compress(codec, plain, high);
        EXPECT_LT(tight.size(), loose.size()) << wire::to_string(codec);
        EXPECT_EQ(*wire::decompress(codec, tight), *wire::decompress(codec, loose));
    }
}

}  // namespace
}  // namespace kaas::storage
