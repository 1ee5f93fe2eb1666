// Goal: the transactions that were aborted are named to readers as by Apache 4.4, through restarts,
// rolls, compaction and whatever happens to their indexes; nothing aborted is served as committed.
// Method: a log in memory, whose reads are filtered as Java's consumer does (`CompletedFetch`);
// random histories against a model.

#include "storage/aborted_index.h"
#include "storage/check.h"
#include "storage/memory_volume.h"
#include "storage/testing_committed.h"
#include "storage/testing_compaction.h"
#include "storage/testing_log.h"
#include "storage/testing_seeds.h"
#include "storage/testing_transactions.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace kaas::storage {
namespace {

using testing::committed_offsets;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::TransactionsTest;

constexpr auto kPartition = "topic.AAAAAAAAAAAAAAAAAAAAAA/0";

[[nodiscard]] std::string hex(base::ByteView bytes) {
    std::string text;
    for (const auto byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned>(byte));
    return text;
}

TEST(AbortedTransactionTest, IsApachesToTheByte) {
    std::byte bytes[AbortedTransaction::kBytes];
    AbortedTransaction{base::ProducerId{7777}, base::Offset{100}, base::Offset{200},
                       base::Offset{150}}
        .encode(bytes);
    EXPECT_EQ(hex(bytes), "00000000000000001e61000000000000006400000000000000c80000000000000096");
}

TEST_F(TransactionsTest, ReadsNameWhatWasAborted) {
    auto log = open(0);
    begin(*log, 1);
    end(*log, 1, false);
    begin(*log, 1);
    end(*log, 1, true);
    begin(*log, 2);
    end(*log, 2, false);
    EXPECT_THAT(aborted(*log, 0), ElementsAre(std::pair(std::int64_t{0}, std::int64_t{1}),
                                              std::pair(std::int64_t{4}, std::int64_t{5})));
    EXPECT_THAT(aborted(*log, 2), ElementsAre(std::pair(std::int64_t{4}, std::int64_t{5})));
    EXPECT_THAT(*committed_offsets(*log), ElementsAre(2));
    const auto read = log->read({.max_bytes = 1 << 20}, Patience::kNever);
    EXPECT_THAT(read->aborted, IsEmpty()) << "whoever reads all asks for none";
}

/// Offsets 0 to 2 are plain, 3 begins a transaction, which 4 aborts; each batch has an entry in the
/// offset index.
class BoundTest : public TransactionsTest {
protected:
    void SetUp() override {
        config_.index_interval_bytes = 0;
        log_ = open(0, config_);
        for (int i = 0; i < 3; ++i) append_durably(*log_, {});
        begin(*log_, 1);
        end(*log_, 1, false);
    }

    LogConfig config_;
    LogPtr log_;
    const std::uint64_t one_ = testing::make_batch({}).size();
};

/// Apache asks the offset index how far a read may reach: with an entry for each batch, to the
/// next.
TEST_F(BoundTest, ReadsNameNothingThatBeginsBehindThem) {
    EXPECT_THAT(aborted(*log_, 0, one_), IsEmpty());
    EXPECT_THAT(aborted(*log_, 0, 3 * one_), IsEmpty()) << "it begins at the bound";
    EXPECT_THAT(aborted(*log_, 0, 4 * one_),
                ElementsAre(std::pair(std::int64_t{3}, std::int64_t{4})));
}

/// A bound that is too low would hide what was aborted.
TEST_F(BoundTest, ADamagedOffsetIndexHidesNothing) {
    ASSERT_TRUE(log_->release(std::chrono::seconds(1)));
    auto index = *volume_.open(std::string(kPartition) + "/00000000/00000000000000000000.index",
                               OpenMode::kReadWrite);
    for (std::uint64_t at = 0; at < *index->size(); at += OffsetEntry::kBytes) {
        std::byte bytes[OffsetEntry::kBytes];
        ASSERT_TRUE(index->read_at(at, bytes));
        auto entry = OffsetEntry::decode(bytes);
        if (std::cmp_less(entry.position, 4 * one_)) continue;
        entry.relative_offset = 1;
        entry.encode(bytes);
        const base::ByteView piece(bytes);
        ASSERT_TRUE(index->write_at(at, {&piece, 1}));
    }
    restart();
    log_ = open(1, config_);
    EXPECT_THAT(aborted(*log_, 0, 4 * one_),
                ElementsAre(std::pair(std::int64_t{3}, std::int64_t{4})));
}

TEST_F(TransactionsTest, AMarkerSegmentsLaterIsFound) {
    LogConfig config;
    config.segment_bytes = 300;
    auto log = open(0, config);
    begin(*log, 1);
    for (int i = 0; i < 20; ++i) append_durably(*log, {});
    end(*log, 1, false);
    for (int i = 0; i < 20; ++i) append_durably(*log, {});
    EXPECT_GT(log->view().sealed->size(), 8U);
    EXPECT_THAT(aborted(*log, 0), ElementsAre(std::pair(std::int64_t{0}, std::int64_t{21})));
    EXPECT_THAT(aborted(*log, 22), IsEmpty());
    EXPECT_EQ(committed_offsets(*log)->size(), 40U);
}

class IndexLossTest : public TransactionsTest {
protected:
    /// Ten aborted transactions and ten committed ones in several segments, under one epoch; what
    /// is recorded of the last segment ends in the middle of it.
    void SetUp() override {
        config_.segment_bytes = 1000;
        auto log = open(0, config_);
        for (int i = 0; i < 10; ++i) {
            begin(*log, 1);
            begin(*log, 2);
            end(*log, 1, true);
            end(*log, 2, false);
        }
        expected_ = *committed_offsets(*log);
        ASSERT_EQ(expected_.size(), 10U);
        volume_.crash({});
        restart();
    }
    [[nodiscard]] std::vector<std::string> indexes() {
        std::vector<std::string> paths;
        for (const auto* epoch : {"00000000", "00000001"}) {
            const auto directory = fmt::format("{}/{}", kPartition, epoch);
            const auto names = volume_.list(directory);
            if (!names) continue;
            for (const auto& name : *names) {
                if (name.ends_with(".txnindex")) paths.push_back(directory + "/" + name);
            }
        }
        return paths;
    }
    void damage(const std::string& path, std::uint64_t at) {
        auto file = *volume_.open(path, OpenMode::kReadWrite);
        std::byte byte{};
        ASSERT_TRUE(file->read_at(at, {&byte, 1}));
        byte ^= std::byte{1};
        const base::ByteView piece(&byte, 1);
        ASSERT_TRUE(file->write_at(at, {&piece, 1}));
    }

    LogConfig config_;
    std::vector<std::int64_t> expected_;
};

TEST_F(IndexLossTest, WithAllOfItNothingAbortedIsServed) {
    auto log = open(1, config_);
    EXPECT_EQ(*committed_offsets(*log), expected_);
    EXPECT_GT(indexes().size(), 2U);
}

TEST_F(IndexLossTest, WithoutItNothingAbortedIsServed) {
    const testing::QuietLog quiet;
    for (const auto& path : indexes()) ASSERT_TRUE(volume_.unlink(path));
    auto log = open(1, config_);
    EXPECT_EQ(*committed_offsets(*log), expected_);
    // Who may not block is sent away at first, and served from memory then.
    EXPECT_THAT(aborted(*log, 0), ::testing::Not(IsEmpty()));
}

TEST_F(IndexLossTest, DamagedNothingAbortedIsServed) {
    const testing::QuietLog quiet;
    ASSERT_TRUE(open(1, config_)->release(std::chrono::seconds(1)));
    for (const auto& path : indexes()) damage(path, 16);  // a first offset is 256 higher
    restart();
    auto log = open(2, config_);
    EXPECT_EQ(*committed_offsets(*log), expected_);
}

TEST_F(IndexLossTest, TornNothingAbortedIsServed) {
    const testing::QuietLog quiet;
    for (const auto& path : indexes()) {
        ASSERT_TRUE(volume_.unlink(path));
        ASSERT_TRUE(volume_.create(path));
    }
    auto log = open(1, config_);
    EXPECT_EQ(*committed_offsets(*log), expected_);
}

TEST_F(IndexLossTest, WhoMayNotBlockIsSentToThePool) {
    auto log = open(1, config_);
    const Read read{.max_bytes = 1 << 20, .isolation = Isolation::kReadCommitted};
    EXPECT_EQ(log->read(read, Patience::kNever).error().code, ErrorCode::kWouldBlock);
    const auto blocking = log->read(read, Patience::kMayBlock);
    ASSERT_TRUE(blocking);
    const auto again = log->read(read, Patience::kNever);
    ASSERT_TRUE(again) << again.error().context;
    EXPECT_EQ(again->aborted, blocking->aborted);
}

TEST_F(IndexLossTest, WhatWasReadFromTheLogIsWhatTheIndexSays) {
    auto log = open(1, config_);
    const auto read = [&] {
        std::vector<std::vector<AbortedTransaction>> all;
        for (std::int64_t from = 0; from < 40; ++from)
            all.push_back(read_committed(*log, from)->aborted);
        return all;
    };
    const auto indexed = read();
    const testing::QuietLog quiet;
    for (const auto& path : indexes()) ASSERT_TRUE(volume_.unlink(path));
    restart();
    log = open(2, config_);
    EXPECT_EQ(read(), indexed);
}

/// What a manifest vouches for must be durable before it does.
TEST_F(TransactionsTest, ACheckpointComesBehindItsIndex) {
    broker_ = std::make_unique<testing::Broker>(volume_, clock_, 1);
    auto log = open(0);
    for (int i = 0; i < 3; ++i) {
        begin(*log, 1);
        end(*log, 1, false);
    }
    volume_.crash({});
    int damages = 0;
    ASSERT_TRUE(check_partitions(volume_, "", [&](const Damage&) { ++damages; }));
    EXPECT_EQ(damages, 0);
    EXPECT_TRUE(volume_.open(std::string(kPartition) + "/00000000/00000000000000000000.txnindex",
                             OpenMode::kRead));
}

TEST(AbortedIndexTest, MemoryIsBoundedAndEverythingIsFound) {
    MemoryVolume volume;
    AbortedIndex index(IndexOrigin::kNew);
    AbortedSeal seal;
    constexpr std::int64_t kCount = 5000;
    for (std::int64_t i = 0; i < kCount; ++i) {
        const AbortedTransaction one{base::ProducerId{i}, base::Offset{10 * i},
                                     base::Offset{10 * i + 5}, base::Offset{10 * i + 6}};
        index.append(one);
        seal.add(one);
        if (i % 100 == 0) ASSERT_TRUE(index.flush(volume, "x"));
    }
    ASSERT_TRUE(index.flush(volume, "x"));
    EXPECT_LT(index.size_in_memory(), 300U);
    AbortedIndex existing(IndexOrigin::kExisting);
    for (auto* one : {&index, &existing}) {
        for (const std::int64_t at : {0, 1, 777, 4800, 4900, 4999}) {
            std::vector<AbortedTransaction> found;
            const auto complete =
                one->collect(volume, "x", seal, base::Offset{10 * at}, base::Offset{10 * at + 11},
                             Patience::kMayBlock, found);
            ASSERT_TRUE(complete) << complete.error().context;
            EXPECT_EQ(*complete, at + 1 < kCount);
            EXPECT_EQ(found.size(), at + 1 < kCount ? 2U : 1U);
            EXPECT_EQ(found.front().producer_id, base::ProducerId{at});
        }
    }
    index.drop_memory();
    EXPECT_EQ(index.size_in_memory(), 0U);
}

TEST_F(TransactionsTest, CompactionTakesWhatWasAbortedAndKeepsTheMarkers) {
    LogConfig config;
    config.compacted = true;
    config.deletes = false;
    config.segment_bytes = 400;
    auto log = open(0, config);
    for (int i = 0; i < 6; ++i) {
        begin(*log, 1);
        end(*log, 1, i % 2 == 0);
    }
    begin(*log, 2);  // stays open: what follows cannot be compacted
    for (int i = 0; i < 6; ++i) {
        begin(*log, 1);
        end(*log, 1, i % 2 == 0);
    }
    end(*log, 2, true);
    append_durably(*log, {});
    testing::TestCleaner cleaner(clock_);
    ASSERT_TRUE(cleaner.run(*log));
    EXPECT_GT(cleaner.counts.records_in, cleaner.counts.records_kept);
    EXPECT_TRUE(std::ranges::any_of(*log->view().sealed, [](const SegmentSpan& span) {
        return span.facts.compaction > 0 && span.facts.aborted.count > 0;
    })) << "the markers that stay belong to an index";
    const auto committed = *committed_offsets(*log);
    kill_and_reopen(log, config);
    EXPECT_EQ(*committed_offsets(*log), committed);
    for (const auto offset : committed) {
        // Offsets 0..11 and 13..24 are batch, marker, batch, marker; every other pair is aborted.
        if (offset != 12 && offset < 25) {
            const auto pair = (offset < 12 ? offset : offset - 13) / 2;
            EXPECT_EQ(pair % 2, 0) << offset;
        }
    }
}

// ---- random histories -------------------------------------------------------------------------

/// What a consumer should see, by the history alone.
struct Model {
    struct Transaction {
        std::int64_t first;
        std::vector<std::int64_t> offsets;
    };
    std::map<std::int64_t, Transaction> open;
    std::vector<std::int64_t> committed;
    std::int64_t end = 0;

    [[nodiscard]] std::int64_t stable() const {
        std::int64_t least = end;
        for (const auto& [producer, transaction] : open) least = std::min(least, transaction.first);
        return least;
    }
    [[nodiscard]] std::vector<std::int64_t> visible() const {
        auto sorted = committed;
        std::ranges::sort(sorted);
        const auto limit = stable();
        std::erase_if(sorted, [&](std::int64_t offset) { return offset >= limit; });
        return sorted;
    }
};

class HistoryTest : public TransactionsTest, public ::testing::WithParamInterface<std::uint64_t> {
protected:
    [[nodiscard]] std::int64_t pick(std::uint64_t n) {
        return static_cast<std::int64_t>(random_() % n);
    }
    void reopen() {
        if (pick(2) == 0) {
            ASSERT_TRUE(log_->release(std::chrono::seconds(1)));
            restart();
            log_ = open(log_->epoch().value() + 1, config_);
        } else {
            kill_and_reopen(log_, config_);
        }
    }
    void append_plain() {
        append_durably(*log_, {});
        model_.committed.push_back(model_.end++);
    }
    void append_to_transaction(std::int64_t producer) {
        begin(*log_, producer);
        model_.open.try_emplace(producer, Model::Transaction{model_.end, {}})
            .first->second.offsets.push_back(model_.end);
        ++model_.end;
    }
    void end_transaction(std::int64_t producer) {
        const bool commit = pick(2) == 0;
        end(*log_, producer, commit);
        ++model_.end;
        const auto ended = model_.open.extract(producer);
        if (!ended || !commit) return;
        for (const auto offset : ended.mapped().offsets) model_.committed.push_back(offset);
    }
    void look() {
        ASSERT_EQ(log_->view().last_stable_offset.value(), model_.stable());
        const auto from = pick(static_cast<std::uint64_t>(model_.end) + 1);
        auto expected = model_.visible();
        std::erase_if(expected, [&](std::int64_t offset) { return offset < from; });
        const auto seen = committed_offsets(*log_, from, static_cast<std::uint64_t>(1 + pick(600)));
        ASSERT_TRUE(seen) << seen.error().context;
        ASSERT_EQ(*seen, expected);
    }

    std::mt19937_64 random_{GetParam()};
    LogConfig config_;
    std::shared_ptr<PartitionLog> log_;
    Model model_;
};

TEST_P(HistoryTest, ReadersSeeWhatWasCommitted) {
    config_.segment_bytes = static_cast<std::int32_t>(300 + pick(1500));
    config_.index_interval_bytes = static_cast<std::int32_t>(pick(300));
    log_ = open(0, config_);
    for (int i = 0; i < 80 && !HasFatalFailure(); ++i) {
        const auto producer = pick(4);
        const auto act = pick(12);
        if (act < 2) {
            reopen();
        } else if (act < 3) {
            append_plain();
        } else if (act < 6) {
            end_transaction(producer);
        } else {
            append_to_transaction(producer);
        }
        look();
    }
}

INSTANTIATE_TEST_SUITE_P(Seeds, HistoryTest, ::testing::Range<std::uint64_t>(0, 100));

}  // namespace
}  // namespace kaas::storage
