// Goal: records come back as they were written, in every codec, and bad or hostile bytes are
// refused.
#include "wire/records.h"

#include "base/bytes.h"
#include "base/metrics.h"
#include "base/result.h"
#include "wire/compression.h"
#include "wire/error.h"
#include "wire/record_batch.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kaas::wire {
namespace {

using Batch = std::vector<std::byte>;

class RecordsTest : public ::testing::TestWithParam<Compression> {
protected:
    Result<std::vector<Record>> read(const Batch& batch, std::size_t limit = kUnpackedBytesMax) {
        KAAS_TRY_ASSIGN(view, first_batch(batch));
        auto opened = RecordReader::open(view, site_, {.batch_bytes = limit});
        if (!opened) return std::unexpected(opened.error());
        readers_.push_back(std::make_unique<RecordReader>(std::move(*opened)));
        std::vector<Record> all;
        for (;;) {
            Record record;
            KAAS_TRY_ASSIGN(more, readers_.back()->next(record));
            if (!more) return all;
            all.push_back(record);
        }
    }

    base::metrics::Registry registry_;
    DecodeSite site_{registry_, "test"};
    std::vector<std::unique_ptr<RecordReader>> readers_;
};

using RecordsOfEveryCodec = RecordsTest;

TEST_P(RecordsOfEveryCodec, ComeBackAsWritten) {
    BatchBuilder builder({.base_offset = 100,
                          .compression = GetParam(),
                          .producer_id = 1,
                          .producer_epoch = 0,
                          .base_sequence = 7});
    std::string large(100'000, 'x');
    std::vector<RecordHeader> headers = {
        {"h", base::as_bytes("v")}, {"", std::nullopt}, {"h", ByteView()}};
    builder.add(5000, base::as_bytes("k"), base::as_bytes("v"), headers);
    builder.add(4000, std::nullopt, base::as_bytes(large));
    builder.add_at(110, 6000, base::as_bytes(""), std::nullopt);
    Batch batch = builder.build();
    auto view = first_batch(batch);
    ASSERT_TRUE(view);
    EXPECT_TRUE(check_crc(*view));
    EXPECT_EQ(view->header.last_offset(), 110);
    EXPECT_EQ(view->header.max_timestamp, 6000);
    EXPECT_EQ(view->header.compression(), GetParam());

    auto records = read(batch);
    ASSERT_TRUE(records) << records.error().context;
    ASSERT_EQ(records->size(), 3U);
    EXPECT_EQ(records->at(0),
              (Record{100, 5000, 7, base::as_bytes("k"), base::as_bytes("v"), headers}));
    EXPECT_EQ(records->at(1), (Record{101, 4000, 8, std::nullopt, base::as_bytes(large), {}}));
    EXPECT_EQ(records->at(2), (Record{110, 6000, 17, ByteView(), std::nullopt, {}}));
    EXPECT_EQ(site_.decoded(), 3U);
}

TEST_P(RecordsOfEveryCodec, MoreThanTheLimitIsRefused) {
    BatchBuilder builder({.compression = GetParam()});
    std::string large(200'000, 'x');
    builder.add(0, std::nullopt, base::as_bytes(large));
    Batch batch = builder.build();
    if (GetParam() == Compression::kNone) return;  // nothing is unpacked
    auto records = read(batch, 100'000);
    ASSERT_FALSE(records);
    EXPECT_EQ(records.error().code, CodecError::kTooLarge);
    EXPECT_TRUE(read(batch, 200'020));
}

TEST_P(RecordsOfEveryCodec, ExactlyTheLimitIsAccepted) {
    std::string plain(123'457, 'y');
    auto packed = compress(GetParam(), base::as_bytes(plain));
    auto unpacked = decompress(GetParam(), packed, plain.size());
    ASSERT_TRUE(unpacked) << unpacked.error().context;
    EXPECT_EQ(unpacked->size(), plain.size());
    if (GetParam() == Compression::kNone) return;
    EXPECT_FALSE(decompress(GetParam(), packed, plain.size() - 1));
}

TEST_P(RecordsOfEveryCodec, EveryTruncationIsRefused) {
    if (GetParam() == Compression::kNone) return;
    std::string plain;
    for (int i = 0; i < 500; ++i) plain += std::to_string(i * i);
    auto packed = compress(GetParam(), base::as_bytes(plain));
    for (std::size_t size = 0; size < packed.size(); ++size) {
        auto unpacked = decompress(GetParam(), ByteView(packed).first(size));
        if (unpacked) {
            EXPECT_LT(unpacked->size(), plain.size()) << "cut at " << size;
        } else {
            EXPECT_EQ(unpacked.error().code, CodecError::kCompression);
        }
    }
}

TEST_P(RecordsOfEveryCodec, NoBitFlipHarms) {
    std::string plain(300, 'z');
    auto packed = compress(GetParam(), base::as_bytes(plain));
    for (std::size_t bit = 0; bit < packed.size() * 8; ++bit) {
        auto damaged = packed;
        damaged[bit / 8] ^= static_cast<std::byte>(1 << (bit % 8));
        auto unpacked = decompress(GetParam(), damaged, 1 << 20);
        if (unpacked) EXPECT_LE(unpacked->size(), std::size_t{1} << 20);
    }
}

INSTANTIATE_TEST_SUITE_P(Codecs, RecordsOfEveryCodec,
                         ::testing::Values(Compression::kNone, Compression::kGzip,
                                           Compression::kSnappy, Compression::kLz4,
                                           Compression::kZstd),
                         [](const auto& info) { return std::string(to_string(info.param)); });

class DamagedRecords : public RecordsTest {
protected:
    /// A batch of one record whose bytes are given.
    Batch with_payload(ByteView payload, std::int32_t count = 1) {
        BatchBuilder builder({});
        builder.add(0, std::nullopt, std::nullopt);
        Batch batch = builder.build();
        batch.resize(BatchHeader::kBytes);
        batch.insert(batch.end(), payload.begin(), payload.end());
        base::store_be(batch.data() + 8, static_cast<std::int32_t>(batch.size() - 12));
        base::store_be(batch.data() + 57, count);
        return batch;
    }
    CodecError fault(const Batch& batch) {
        auto records = read(batch);
        return records ? CodecError::kUnknownApi : records.error().code;  // kUnknownApi: no fault
    }
};

Batch octets(std::initializer_list<int> values) {
    Batch result;
    for (int v : values) result.push_back(static_cast<std::byte>(v));
    return result;
}

// size 6 (zigzag 12), attributes, timestamp delta, offset delta, null key, null value, no headers
const Batch kSmallest = octets({12, 0, 0, 0, 1, 1, 0});

TEST_F(DamagedRecords, TheSmallestRecordIsRead) {
    auto records = read(with_payload(kSmallest));
    ASSERT_TRUE(records) << records.error().context;
    EXPECT_EQ(records->size(), 1U);
}

TEST_F(DamagedRecords, AreRefused) {
    struct Row {
        const char* name;
        Batch payload;
        std::int32_t count;
    };
    Batch two = kSmallest;
    two.insert(two.end(), kSmallest.begin(), kSmallest.end());
    const Row rows[] = {
        {"fewer records than counted", kSmallest, 2},
        {"more records than counted", two, 1},
        {"negative count", kSmallest, -1},
        {"nothing at all", {}, 1},
        {"negative size", octets({1, 0, 0, 0, 1, 1, 0}), 1},
        {"size past the end", octets({14, 0, 0, 0, 1, 1, 0}), 1},
        {"size short of the record", octets({10, 0, 0, 0, 1, 1, 0}), 1},
        {"size beyond the record's end", octets({14, 0, 0, 0, 1, 1, 0, 0}), 1},
        {"key past the end", octets({12, 0, 0, 0, 100, 1, 0}), 1},
        {"value past the end", octets({12, 0, 0, 0, 1, 100, 0}), 1},
        {"negative header count", octets({12, 0, 0, 0, 1, 1, 1}), 1},
        {"more headers than bytes", octets({12, 0, 0, 0, 1, 1, 100}), 1},
        {"null header key", octets({16, 0, 0, 0, 1, 1, 2, 1, 1}), 1},
        {"header count of two billion", octets({20, 0, 0, 0, 1, 1, 0xFE, 0xFF, 0xFF, 0xFF, 0x0F}),
         1},
        {"endless varint", octets({0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF}), 1},
    };
    for (const auto& row : rows)
        EXPECT_EQ(fault(with_payload(row.payload, row.count)), CodecError::kInvalid) << row.name;
}

TEST_F(DamagedRecords, ATruncatedRecordIsRefusedAtEveryLength) {
    BatchBuilder builder({});
    std::vector<RecordHeader> headers = {{"key", base::as_bytes("value")}};
    builder.add(1, base::as_bytes("key"), base::as_bytes("value"), headers);
    Batch whole = builder.build();
    ByteView payload = ByteView(whole).subspan(BatchHeader::kBytes);
    for (std::size_t size = 0; size < payload.size(); ++size) {
        EXPECT_EQ(fault(with_payload(payload.first(size))), CodecError::kInvalid) << size;
    }
}

TEST_F(DamagedRecords, ASnappyLengthThatLiesCostsNoMemory) {
    // A bare block that claims 2 GB and holds nothing.
    auto lie = octets({0xFF, 0xFF, 0xFF, 0xFF, 0x07});
    EXPECT_EQ(decompress(Compression::kSnappy, lie).error().code, CodecError::kTooLarge);
    auto smaller_lie = octets({0xFF, 0xFF, 0xFF, 0x07});
    EXPECT_EQ(decompress(Compression::kSnappy, smaller_lie).error().code, CodecError::kCompression);
}

TEST_F(DamagedRecords, EmptyBatchOfCompactionHasNoRecords) {
    Batch batch = with_payload({}, 0);
    auto records = read(batch);
    ASSERT_TRUE(records);
    EXPECT_TRUE(records->empty());
}

TEST(Compression, BareSnappyBlocksAreRead) {
    auto framed = compress(Compression::kSnappy, base::as_bytes("hello hello hello"));
    auto bare = ByteView(framed).subspan(20);  // header, block length
    auto plain = decompress(Compression::kSnappy, bare);
    ASSERT_TRUE(plain);
    EXPECT_EQ(base::as_text(*plain), "hello hello hello");
}

TEST(Compression, ConcatenatedStreamsAreRead) {
    for (auto codec : {Compression::kGzip, Compression::kSnappy, Compression::kZstd}) {
        auto twice = compress(codec, base::as_bytes("one "));
        auto second = compress(codec, base::as_bytes("two"));
        twice.insert(twice.end(), second.begin(), second.end());
        auto plain = decompress(codec, twice);
        ASSERT_TRUE(plain) << to_string(codec) << plain.error().context;
        EXPECT_EQ(base::as_text(*plain), "one two") << to_string(codec);
    }
}

TEST(Compression, UnknownCodecIsRefused) {
    EXPECT_EQ(decompress(Compression(7), {}).error().code, CodecError::kCompression);
}

}  // namespace
}  // namespace kaas::wire
