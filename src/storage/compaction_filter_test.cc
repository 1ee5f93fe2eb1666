// Goal: what stays of a batch is what Apache 4.4 leaves of it, for every kind of batch. Method: one
// batch at a time against a map that says which records are the last of their key.
#include "storage/compaction_filter.h"

#include "storage/testing_compaction.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kaas::storage {
namespace {

using testing::KeyedBatch;
using testing::look_at;
using testing::make_keyed_batch;

constexpr std::int64_t kNow = 1'700'000'000'000;
constexpr std::int64_t kProducer = 7;

using Bytes = std::vector<std::byte>;

class CompactionFilterTest : public ::testing::Test {
protected:
    CompactionFilterTest() { map_.reset(100); }

    /// A log in which `key` was last written at `offset`.
    void last(const std::string& key, std::int64_t offset) {
        map_.put(base::as_bytes(key), base::Offset{offset});
    }

    [[nodiscard]] Bytes filter(const Bytes& batch) {
        const CompactionRules rules{.last_offsets = &map_,
                                    .mapped_to = base::Offset{99},
                                    .now_ms = kNow,
                                    .delete_retention_ms = 1000,
                                    .high_watermark = high_watermark_,
                                    .last_batches = &last_batches_};
        CompactionFilter filter(rules, transactions_, site_);
        Bytes out;
        const auto done = filter.filter(*wire::first_batch(batch), out);
        EXPECT_TRUE(done.has_value()) << done.error().context;
        counts_ = filter.counts();
        return out;
    }

    [[nodiscard]] static Bytes batch(std::int64_t offset, const std::string& key,
                                     std::optional<std::string> value = "v") {
        return make_keyed_batch({.records = {{key, std::move(value)}}, .base_offset = offset});
    }
    [[nodiscard]] static Bytes of_producer(std::int64_t offset, const std::string& key,
                                           bool transactional = false) {
        return make_keyed_batch({.records = {{key, "v"}},
                                 .producer_id = kProducer,
                                 .producer_epoch = 3,
                                 .sequence = 40,
                                 .base_offset = offset,
                                 .transactional = transactional});
    }
    [[nodiscard]] static Bytes marker(std::int64_t offset, TransactionEnd end) {
        wire::BatchBuilder builder({.base_offset = offset,
                                    .producer_id = kProducer,
                                    .producer_epoch = 3,
                                    .transactional = true,
                                    .control = true});
        const std::byte key[] = {std::byte{0}, std::byte{0}, std::byte{0},
                                 std::byte{end == TransactionEnd::kCommit}};
        const std::byte value[6] = {};
        builder.add(kNow, base::ByteView(key), base::ByteView(value));
        return builder.build();
    }

    base::metrics::Registry metrics_;
    wire::DecodeSite site_{metrics_, "test"};
    OffsetMap map_{KeyHasher({1, 2})};
    TransactionFilter transactions_{{}};
    LastBatches last_batches_;
    base::Offset high_watermark_{1000};
    CompactionCounts counts_;
};

TEST_F(CompactionFilterTest, WhatLosesNothingIsCopied) {
    last("a", 5);
    const auto same = batch(5, "a");
    EXPECT_EQ(filter(same), same);
    EXPECT_EQ(counts_.records_kept, 1u);
}

TEST_F(CompactionFilterTest, SupersededBatchGoesWhole) {
    last("a", 5);
    EXPECT_TRUE(filter(batch(4, "a")).empty());
    EXPECT_EQ(counts_.records_in, 1u);
    EXPECT_EQ(counts_.records_kept, 0u);
}

TEST_F(CompactionFilterTest, WhatTheMapDoesNotReachStays) {
    last("a", 50);
    const auto behind = batch(100, "a");
    EXPECT_EQ(filter(behind), behind);
    const auto unknown = batch(7, "nobody-has-this-key");
    EXPECT_EQ(filter(unknown), unknown);
}

TEST_F(CompactionFilterTest, RecordWithoutKeyGoesAndIsCounted) {
    wire::BatchBuilder builder({.base_offset = 3});
    builder.add(kNow, std::nullopt, base::as_bytes("v"));
    EXPECT_TRUE(filter(builder.build()).empty());
    EXPECT_EQ(counts_.records_without_key, 1u);
}

TEST_F(CompactionFilterTest, LastBatchOfTheLogStaysWithoutRecords) {
    last("a", 9);
    high_watermark_ = base::Offset{5};
    const auto seen = look_at(filter(batch(4, "a")));
    ASSERT_EQ(seen.batches.size(), 1u);
    EXPECT_EQ(seen.batches[0].count, 0);
    EXPECT_EQ(seen.batches[0].base_offset, 4);
}

TEST_F(CompactionFilterTest, LastBatchOfAProducerStaysWithoutRecords) {
    last("a", 9);
    last_batches_[base::ProducerId{kProducer}] = {.last_data_offset = base::Offset{4},
                                                  .epoch = base::ProducerEpoch{3}};
    EXPECT_TRUE(filter(of_producer(3, "a")).empty());
    const auto seen = look_at(filter(of_producer(4, "a")));
    ASSERT_EQ(seen.batches.size(), 1u);
    EXPECT_EQ(seen.batches[0].count, 0);
    EXPECT_EQ(seen.batches[0].last_sequence(), 40);
    EXPECT_EQ(seen.batches[0].producer_epoch, 3);
}

TEST_F(CompactionFilterTest, RecordsOfAbortedTransactionsGo) {
    last("a", 4);
    transactions_ = TransactionFilter({{base::ProducerId{kProducer}, base::Offset{4}}});
    EXPECT_TRUE(filter(of_producer(4, "a", true)).empty()) << "although it is the last of its key";
    const auto abort = marker(5, TransactionEnd::kAbort);
    EXPECT_EQ(filter(abort), abort) << "the marker ends what was met: it stays as it is";
}

TEST_F(CompactionFilterTest, RecordsOfCommittedTransactionsStay) {
    last("a", 4);
    const auto data = of_producer(4, "a", true);
    EXPECT_EQ(filter(data), data);
    const auto commit = marker(5, TransactionEnd::kCommit);
    EXPECT_EQ(filter(commit), commit);
}

TEST_F(CompactionFilterTest, MarkerThatEndsNothingGetsAHorizonAndThenGoes) {
    for (const auto end : {TransactionEnd::kAbort, TransactionEnd::kCommit}) {
        const auto once = filter(marker(5, end));
        const auto header = look_at(once).batches.at(0);
        EXPECT_EQ(header.delete_horizon_ms(), kNow + 1000);
        EXPECT_TRUE(header.control());
        EXPECT_EQ(filter(once), once) << "its time has not come";
        auto old = Bytes();
        wire::BatchRewriter rewriter(header, kNow);
        const auto view = *wire::first_batch(once);
        auto scanner = wire::RecordScanner::open(view, site_);
        wire::RecordSketch record;
        ASSERT_TRUE(scanner->next(record).value());
        rewriter.keep(record);
        rewriter.write(old);
        EXPECT_TRUE(filter(old).empty());
    }
}

TEST_F(CompactionFilterTest, MarkerOfAProducerThatWroteNothingElseStaysEmpty) {
    last_batches_[base::ProducerId{kProducer}] = {.epoch = base::ProducerEpoch{3}};
    auto header = look_at(filter(marker(5, TransactionEnd::kCommit))).batches.at(0);
    wire::BatchRewriter rewriter(header, kNow);
    const auto bytes = marker(5, TransactionEnd::kCommit);
    auto scanner = wire::RecordScanner::open(*wire::first_batch(bytes), site_);
    wire::RecordSketch record;
    ASSERT_TRUE(scanner->next(record).value());
    rewriter.keep(record);
    Bytes old;
    rewriter.write(old);
    const auto seen = look_at(filter(old));
    ASSERT_EQ(seen.batches.size(), 1u);
    EXPECT_EQ(seen.batches[0].count, 0);
    EXPECT_TRUE(seen.batches[0].control());
    Bytes empty;
    wire::BatchRewriter::write_empty(header, empty);
    EXPECT_EQ(filter(empty), empty) << "an empty one passes again as it is";
}

TEST_F(CompactionFilterTest, RecordOutsideItsBatchIsDamage) {
    auto bytes = make_keyed_batch({.records = {{"a", "v"}, {"b", "v"}}, .base_offset = 5});
    base::store_be(bytes.data() + 23, std::int32_t{0});  // the last offset delta
    const CompactionRules rules{.last_offsets = &map_, .last_batches = &last_batches_};
    CompactionFilter filter(rules, transactions_, site_);
    Bytes out;
    const auto done = filter.filter(*wire::first_batch(bytes), out);
    ASSERT_FALSE(done.has_value());
    EXPECT_EQ(done.error().code, ErrorCode::kCorrupt);
}

}  // namespace
}  // namespace kaas::storage
