// Goal: a produced batch is taken or refused exactly as Apache 4.4 does, and what is kept of it is
// what Apache keeps. Method: one good batch, one damage a row; the answers are those of a
// running 4.4 broker (tests/same_request, produce_of_*).

#include "storage/batch_check.h"

#include "base/crc32c.h"
#include "storage/testing_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace kaas::storage {
namespace {

using testing::make_batch;

constexpr std::int64_t kNow = 1'700'000'100'000;
using Bytes = std::vector<std::byte>;

void fix_crc(Bytes& batch) {
    base::store_be(batch.data() + wire::BatchHeader::kCrcAt,
                   base::crc32c(base::ByteView(batch).subspan(wire::BatchHeader::kCrcFrom)));
}

template <class T>
[[nodiscard]] std::function<void(Bytes&)> set(std::size_t at, T value) {
    return [=](Bytes& bytes) {
        base::store_be(bytes.data() + at, value);
        fix_crc(bytes);
    };
}

struct Row {
    std::string fault;
    std::function<void(Bytes&)> damage;
    std::optional<ErrorCode> error;
};

class BatchCheckTest : public ::testing::TestWithParam<Row> {};

TEST_P(BatchCheckTest, AnswersAsApache) {
    auto bytes = make_batch({.records = 3});
    GetParam().damage(bytes);
    base::metrics::Registry metrics;
    wire::DecodeSite site(metrics, "test");
    const auto checked = check_produced(bytes, LogConfig{}, kNow, site);
    if (GetParam().error) {
        ASSERT_FALSE(checked);
        EXPECT_EQ(checked.error().code, *GetParam().error) << checked.error().context;
    } else {
        ASSERT_TRUE(checked) << checked.error().context;
        EXPECT_TRUE(wire::check_crc(*checked));
    }
}

INSTANTIATE_TEST_SUITE_P(
    Damages, BatchCheckTest,
    ::testing::Values(
        Row{"NoneAtAll", [](Bytes&) {}, {}},
        Row{"WrongChecksum", [](Bytes& b) { b[17] ^= std::byte{1}; }, ErrorCode::kCorruptBatch},
        Row{"FlippedValue", [](Bytes& b) { b.back() ^= std::byte{1}; }, ErrorCode::kCorruptBatch},
        Row{"CutInItsRecords", [](Bytes& b) { b.resize(b.size() - 1); }, ErrorCode::kInvalidRecord},
        Row{"CutInItsHeader", [](Bytes& b) { b.resize(40); }, ErrorCode::kInvalidRecord},
        Row{"CutBeforeItsMagic", [](Bytes& b) { b.resize(16); }, ErrorCode::kInvalidRecord},
        Row{"NoBytes", [](Bytes& b) { b.clear(); }, ErrorCode::kInvalidRecord},
        Row{"BytesBehindItThatAreNoBatch", [](Bytes& b) { b.resize(b.size() + 5); }, {}},
        Row{"LengthZero", [](Bytes& b) { base::store_be<std::int32_t>(b.data() + 8, 0); },
            ErrorCode::kCorruptBatch},
        Row{"LengthNegative", [](Bytes& b) { base::store_be<std::int32_t>(b.data() + 8, -1); },
            ErrorCode::kCorruptBatch},
        Row{"LengthTooLarge", [](Bytes& b) { base::store_be<std::int32_t>(b.data() + 8, 1 << 30); },
            ErrorCode::kInvalidRecord},
        Row{"TwoBatches", [](Bytes& b) { b.insert(b.end(), b.begin(), b.end()); },
            ErrorCode::kInvalidRecord},
        Row{"MagicOne", [](Bytes& b) { b[16] = std::byte{1}; }, ErrorCode::kInvalidRecord},
        Row{"MagicThree", [](Bytes& b) { b[16] = std::byte{3}; }, ErrorCode::kCorruptBatch},
        Row{"BaseOffsetSet", set<std::int64_t>(0, 5), ErrorCode::kInvalidRecord},
        Row{"LeaderEpochSet", set<std::int32_t>(12, 9), {}},
        Row{"CountTooSmall", set<std::int32_t>(57, 2), ErrorCode::kInvalidRecord},
        Row{"CountTooLarge", set<std::int32_t>(57, 4), ErrorCode::kInvalidRecord},
        Row{"CountNegative", set<std::int32_t>(57, -1), ErrorCode::kInvalidRecord},
        Row{"LastDeltaNegative", set<std::int32_t>(23, -1), ErrorCode::kInvalidRecord},
        Row{"ControlBatch", set<std::int16_t>(21, 0x20), ErrorCode::kInvalidRecord},
        Row{"UnusedAttributeBits", set<std::int16_t>(21, 0x700), {}},
        Row{"UnknownCodec", set<std::int16_t>(21, 5), ErrorCode::kUnknownCodec},
        Row{"IdWithoutSequence", set<std::int64_t>(43, 7), ErrorCode::kInvalidRecord},
        Row{"TwoHoursAhead", [](Bytes& b) { b = make_batch({.timestamp_ms = kNow + 7'200'000}); },
            ErrorCode::kInvalidTimestamp},
        Row{"HeaderAloneAhead", set<std::int64_t>(35, kNow + 7'200'000), {}}),
    [](const auto& row) { return row.param.fault; });

class BatchTimesTest : public ::testing::Test {
protected:
    [[nodiscard]] Result<wire::BatchView> check(Bytes& bytes) {
        faults_.clear();
        return check_produced(bytes, config_, kNow, site_, &faults_);
    }

    LogConfig config_;
    base::metrics::Registry metrics_;
    wire::DecodeSite site_{metrics_, "test"};
    std::vector<RecordFault> faults_;
};

TEST_F(BatchTimesTest, AnOrdinaryBatchIsNeverDecoded) {
    auto bytes = make_batch({.records = 3});
    ASSERT_TRUE(check(bytes));
    EXPECT_EQ(site_.decoded(), 0);
}

TEST_F(BatchTimesTest, AMissingMaximumIsFilledIn) {
    auto bytes = make_batch({.records = 3, .timestamp_ms = 500});
    set<std::int64_t>(35, -1)(bytes);
    const auto checked = check(bytes);
    ASSERT_TRUE(checked) << checked.error().context;
    EXPECT_EQ(checked->header.max_timestamp, 502);
    EXPECT_TRUE(wire::check_crc(*checked));
}

TEST_F(BatchTimesTest, LogAppendTimeIsStamped) {
    config_.timestamp_type = wire::TimestampType::kLogAppendTime;
    auto bytes = make_batch({.records = 3, .timestamp_ms = kNow + 1'000'000'000});
    const auto checked = check(bytes);
    ASSERT_TRUE(checked) << checked.error().context;
    EXPECT_EQ(checked->header.max_timestamp, kNow);
    EXPECT_EQ(checked->header.timestamp_type(), wire::TimestampType::kLogAppendTime);
    EXPECT_TRUE(wire::check_crc(*checked));
    EXPECT_EQ(site_.decoded(), 0);
}

TEST_F(BatchTimesTest, AClientsLogAppendTimeBecomesCreateTime) {
    auto bytes = make_batch({.records = 1});
    set<std::int16_t>(21, 0x08)(bytes);
    const auto checked = check(bytes);
    ASSERT_TRUE(checked) << checked.error().context;
    EXPECT_EQ(checked->header.timestamp_type(), wire::TimestampType::kCreateTime);
    EXPECT_TRUE(wire::check_crc(*checked));
}

TEST_F(BatchTimesTest, TheRecordsOutOfRangeAreNamed) {
    config_.timestamp_before_max_ms = 1000;
    auto bytes = make_batch({.records = 3, .timestamp_ms = kNow - 1001});
    const auto checked = check(bytes);
    ASSERT_FALSE(checked);
    EXPECT_EQ(checked.error().code, ErrorCode::kInvalidTimestamp);
    ASSERT_EQ(faults_.size(), 1);
    EXPECT_EQ(faults_[0].index, 0);
}

TEST_F(BatchTimesTest, NotMoreThanAThousandRecordsAreNamed) {
    config_.compacted = true;
    wire::BatchBuilder builder({.compression = wire::Compression::kZstd});
    for (int i = 0; i < 5000; ++i) builder.add(kNow, std::nullopt, base::as_bytes("v"));
    auto bytes = builder.build();
    const auto checked = check(bytes);
    ASSERT_FALSE(checked);
    EXPECT_THAT(checked.error().context, ::testing::HasSubstr("5000 records"));
    EXPECT_EQ(faults_.size(), 1000);
}

TEST_F(BatchTimesTest, ACompactedTopicRefusesNullKeysAndNamesThem) {
    config_.compacted = true;
    wire::BatchBuilder builder({});
    builder.add(kNow, base::as_bytes("key"), base::as_bytes("v"));
    builder.add(kNow, std::nullopt, base::as_bytes("v"));
    auto bytes = builder.build();
    const auto checked = check(bytes);
    ASSERT_FALSE(checked);
    EXPECT_EQ(checked.error().code, ErrorCode::kInvalidRecord);
    ASSERT_EQ(faults_.size(), 1);
    EXPECT_EQ(faults_[0].index, 1);
    EXPECT_EQ(site_.decoded(), 2);
}

TEST_F(BatchTimesTest, ALimitForUnpackedRecordsCountsEachOfAPackedBatch) {
    const auto refusal = [&](std::int32_t limit,
                             wire::Compression codec) -> std::optional<ErrorCode> {
        config_.max_decompressed_message_bytes = limit;
        auto bytes = make_batch({.records = 3, .value_bytes = 1000, .compression = codec});
        const auto checked = check(bytes);
        return checked ? std::nullopt : std::optional(checked.error().code);
    };
    const auto record = static_cast<std::int32_t>(make_batch({.value_bytes = 1000}).size() -
                                                  wire::BatchHeader::kBytes - 2);
    for (const auto codec : {wire::Compression::kGzip, wire::Compression::kSnappy,
                             wire::Compression::kLz4, wire::Compression::kZstd}) {
        EXPECT_FALSE(refusal(record, codec)) << wire::to_string(codec);
        EXPECT_EQ(refusal(record - 1, codec), ErrorCode::kInvalidRecord) << wire::to_string(codec);
        EXPECT_TRUE(faults_.empty());
    }
    EXPECT_FALSE(refusal(1, wire::Compression::kNone)) << "is not unpacked";
}

TEST_F(BatchTimesTest, SizeIsJudgedBeforeTheChecksum) {
    config_.max_message_bytes = 50;
    auto bytes = make_batch({.records = 3});
    bytes.back() ^= std::byte{1};
    EXPECT_EQ(check(bytes).error().code, ErrorCode::kTooLarge);
}

}  // namespace
}  // namespace kaas::storage
