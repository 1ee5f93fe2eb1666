// Goal: a batch keeps all that was to stay when it is written with fewer records. The full reader
// is the judge of what the scanner saw and the rewriter wrote.
#include "wire/batch_rewrite.h"

#include "base/bytes.h"
#include "base/metrics.h"
#include "wire/compression.h"
#include "wire/record_batch.h"
#include "wire/records.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace kaas::wire {
namespace {

using Batch = std::vector<std::byte>;

class BatchRewriteTest : public ::testing::TestWithParam<Compression> {
protected:
    [[nodiscard]] BatchView view_of(const Batch& bytes) {
        auto view = first_batch(bytes);
        EXPECT_TRUE(view.has_value());
        EXPECT_TRUE(check_crc(*view).has_value());
        return *view;
    }

    /// The records as text, so that nothing borrowed outlives its reader.
    [[nodiscard]] std::vector<std::string> read(const Batch& bytes) {
        auto reader = RecordReader::open(view_of(bytes), site_);
        EXPECT_TRUE(reader.has_value());
        std::vector<std::string> lines;
        Record record;
        for (;;) {
            auto more = reader->next(record);
            EXPECT_TRUE(more.has_value());
            if (!more || !*more) return lines;
            lines.push_back(std::to_string(record.offset) + "@" +
                            std::to_string(record.timestamp_ms) + "#" +
                            std::to_string(record.sequence) + " " +
                            std::string(base::as_text(record.key.value_or(ByteView{}))) + "=" +
                            (record.value ? std::string(base::as_text(*record.value)) : "null") +
                            " " + std::to_string(record.headers.size()));
        }
    }

    [[nodiscard]] Batch rewrite(const Batch& bytes, std::optional<std::int64_t> horizon,
                                const std::function<bool(std::int64_t)>& stays) {
        const auto view = view_of(bytes);
        auto scanner = RecordScanner::open(view, site_);
        EXPECT_TRUE(scanner.has_value());
        BatchRewriter rewriter(view.header, horizon);
        RecordSketch record;
        for (;;) {
            auto more = scanner->next(record);
            EXPECT_TRUE(more.has_value()) << more.error().context;
            if (!more || !*more) break;
            if (stays(record.offset)) rewriter.keep(record);
        }
        Batch out;
        rewriter.write(out);
        return out;
    }

    [[nodiscard]] Batch sample(TimestampType type = TimestampType::kCreateTime) const {
        BatchBuilder builder({.base_offset = 100,
                              .partition_leader_epoch = 3,
                              .compression = GetParam(),
                              .timestamp_type = type,
                              .log_append_time_ms = 9'000,
                              .producer_id = 7,
                              .producer_epoch = 2,
                              .base_sequence = 50});
        const std::vector<RecordHeader> headers = {{"h", base::as_bytes("v")}};
        builder.add(1'000, base::as_bytes("a"), base::as_bytes("1"));
        builder.add(5'000, base::as_bytes("b"), std::nullopt);
        builder.add(2'000, std::nullopt, base::as_bytes("3"), headers);
        builder.add(4'000, base::as_bytes("c"), base::as_bytes(""));
        return builder.build();
    }

    base::metrics::Registry registry_;
    DecodeSite site_{registry_, "test"};
};

TEST_P(BatchRewriteTest, KeptRecordsAreAsTheyWereAtTheirOffsets) {
    const auto batch = sample();
    const auto all = read(batch);
    const auto fewer = rewrite(batch, std::nullopt, [](auto at) { return at == 102 || at == 103; });
    EXPECT_EQ(read(fewer), (std::vector<std::string>{all[2], all[3]}));
    const auto header = view_of(fewer).header;
    const auto before = view_of(batch).header;
    EXPECT_EQ(header.base_offset, 100);
    EXPECT_EQ(header.last_offset(), 103);
    EXPECT_EQ(header.base_sequence, before.base_sequence);
    EXPECT_EQ(header.last_sequence(), before.last_sequence());
    EXPECT_EQ(header.partition_leader_epoch, 3);
    EXPECT_EQ(header.producer_id, 7);
    EXPECT_EQ(header.compression(), GetParam());
    EXPECT_EQ(header.base_timestamp, 2'000) << "of the first record that is left";
    EXPECT_EQ(header.max_timestamp, 4'000) << "the newest time is gone";
    EXPECT_FALSE(header.delete_horizon_ms());
}

TEST_P(BatchRewriteTest, DeleteHorizonTakesTheBaseTimestampsPlace) {
    const auto batch = sample();
    const auto with = rewrite(batch, 77'000, [](auto) { return true; });
    EXPECT_EQ(view_of(with).header.delete_horizon_ms(), 77'000);
    EXPECT_EQ(read(with), read(batch));
    const auto again = rewrite(with, 77'000, [](auto at) { return at == 101; });
    EXPECT_EQ(view_of(again).header.delete_horizon_ms(), 77'000);
    EXPECT_EQ(read(again), (std::vector<std::string>{read(batch)[1]}));
}

TEST_P(BatchRewriteTest, AppendTimeStays) {
    const auto batch = sample(TimestampType::kLogAppendTime);
    const auto fewer = rewrite(batch, std::nullopt, [](auto at) { return at == 100; });
    EXPECT_EQ(view_of(fewer).header.max_timestamp, 9'000);
    EXPECT_EQ(read(fewer), (std::vector<std::string>{read(batch)[0]}));
}

TEST_P(BatchRewriteTest, EmptyBatchKeepsPlaceAndSequence) {
    const auto batch = sample();
    const auto before = view_of(batch).header;
    Batch out;
    BatchRewriter::write_empty(before, out);
    const auto header = view_of(out).header;
    EXPECT_EQ(out.size(), BatchHeader::kBytes);
    EXPECT_EQ(header.count, 0);
    EXPECT_EQ(header.last_offset(), before.last_offset());
    EXPECT_EQ(header.last_sequence(), before.last_sequence());
    EXPECT_EQ(header.max_timestamp, before.max_timestamp);
    EXPECT_EQ(header.compression(), Compression::kNone);
    EXPECT_TRUE(read(out).empty());
}

TEST_P(BatchRewriteTest, WrittenBehindWhatIsThere) {
    const auto batch = sample();
    Batch out(5, std::byte{1});
    BatchRewriter::write_empty(view_of(batch).header, out);
    EXPECT_TRUE(check_crc(*first_batch(ByteView(out).subspan(5))).has_value());
}

INSTANTIATE_TEST_SUITE_P(Codecs, BatchRewriteTest,
                         ::testing::Values(Compression::kNone, Compression::kGzip,
                                           Compression::kSnappy, Compression::kLz4,
                                           Compression::kZstd),
                         [](const auto& info) { return std::string(to_string(info.param)); });

TEST(RecordScannerTest, RefusesWhatTheReaderRefuses) {
    base::metrics::Registry registry;
    DecodeSite site(registry, "test");
    BatchBuilder builder({});
    builder.add(1, base::as_bytes("key"), base::as_bytes("value"));
    const auto good = builder.build();
    int refused = 0;
    for (auto at = BatchHeader::kBytes; at < good.size(); ++at) {
        for (int flip = 1; flip < 256; flip <<= 1) {
            auto bad = good;
            bad[at] ^= static_cast<std::byte>(flip);
            const auto view = *first_batch(bad);
            auto reader = RecordReader::open(view, site);
            auto scanner = RecordScanner::open(view, site);
            Record record;
            RecordSketch sketch;
            const auto seen = scanner->next(sketch);
            const auto read = reader->next(record);
            refused += seen ? 0 : 1;
            if (!read) continue;  // headers, which the scanner leaves alone, may be the reason
            ASSERT_TRUE(seen.has_value()) << at;
            EXPECT_EQ(sketch.offset, record.offset);
            EXPECT_EQ(sketch.timestamp_ms, record.timestamp_ms);
            EXPECT_EQ(sketch.has_value, record.value.has_value());
        }
    }
    EXPECT_GT(refused, 10) << "nothing was damaged: the test tests nothing";
}

}  // namespace
}  // namespace kaas::wire
