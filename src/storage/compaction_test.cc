// Goal: a compacted log holds the last record of every key, at its offset, and nothing that should
// have gone; what is appended to and what is too young stay as they are; a reader never notices but
// for the holes. Method: logs in memory against the rules one by one, and random logs against a
// simple model. KAAS_SEED replays one.
#include "storage/compaction.h"

#include "storage/testing_compaction.h"
#include "storage/testing_log.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace kaas::storage {
namespace {

using testing::Answer;
using testing::Broker;
using testing::KeyedBatch;
using testing::look_at;
using testing::make_keyed_batch;
using testing::SeenRecord;
using testing::TestCleaner;

class CompactionTest : public ::testing::Test {
protected:
    CompactionTest() {
        config_.compacted = true;
        config_.segment_bytes = 400;
        config_.index_interval_bytes = 100;
        config_.timestamp_after_max_ms = LogConfig::kNoLimit;
    }

    void open() {
        auto opened = broker_->open(next_epoch_++, config_);
        ASSERT_TRUE(opened.has_value()) << opened.error().context;
        log_ = std::move(*opened);
    }

    /// A new life of the broker, with the log released or not.
    void reopen(bool release = true) {
        broker_->commit_all();
        if (release) ASSERT_TRUE(log_->release(std::chrono::seconds(1)).has_value());
        log_.reset();
        broker_ = std::make_unique<Broker>(volume_, clock_);
        open();
    }

    void produce(const KeyedBatch& batch) {
        Answer answer;
        auto appended = log_->append(
            testing::to_append(make_keyed_batch(batch), Acks::kAll, home_, answer.receiver()));
        ASSERT_TRUE(appended.has_value()) << appended.error().context;
        broker_->commit_all();
        ASSERT_TRUE(answer.good());
    }
    void produce(const std::string& key, std::optional<std::string> value) {
        produce({.records = {{key, std::move(value)}}, .timestamp_ms = clock_.wall_ms()});
    }
    /// Fills the active segment with keys of its own until the next one begins.
    void roll() {
        const auto base = log_->view().last.facts.base;
        while (log_->view().last.facts.base == base)
            produce("filler-" + std::to_string(fillers_++), std::string(50, 'f'));
    }

    void compact() {
        const auto done = cleaner_.run(*log_);
        ASSERT_TRUE(done.has_value()) << done.error().context;
        EXPECT_TRUE(*done) << "nothing was compacted";
    }

    /// Offsets of the records that have a key which is not a filler's.
    [[nodiscard]] std::vector<std::int64_t> offsets() {
        std::vector<std::int64_t> found;
        for (const auto& record : look_at(*log_).records) {
            if (!record.key.starts_with("filler")) found.push_back(record.offset);
        }
        return found;
    }

    MemoryVolume volume_;
    base::ManualClock clock_;
    base::InlineExecutor home_;
    LogConfig config_;
    std::unique_ptr<Broker> broker_ = std::make_unique<Broker>(volume_, clock_);
    std::shared_ptr<PartitionLog> log_;
    TestCleaner cleaner_{clock_};
    std::int32_t next_epoch_ = 0;
    int fillers_ = 0;
};

TEST_F(CompactionTest, LastRecordOfEachKeyStaysAtItsOffset) {
    open();
    produce("a", "1");
    produce("b", "2");
    produce("a", "3");
    roll();
    const auto before = look_at(*log_).records;
    compact();
    EXPECT_EQ(offsets(), (std::vector<std::int64_t>{1, 2}));
    const auto after = look_at(*log_).records;
    EXPECT_EQ(after.front(), before[1]);
    EXPECT_EQ(log_->view().log_start, base::Offset{0});
    EXPECT_EQ(log_->view().high_watermark.value(), before.back().offset + 1);
}

TEST_F(CompactionTest, ActiveSegmentStaysAsItIs) {
    open();
    produce("a", "1");
    roll();
    produce("a", "2");
    produce("a", "3");
    const auto active = log_->view().last.facts;
    compact();
    EXPECT_EQ(offsets().size(), 3u) << "the active segment's records superseded nothing";
    EXPECT_EQ(log_->view().last.facts, active);
}

TEST_F(CompactionTest, RestartChangesNothing) {
    open();
    for (int i = 0; i < 20; ++i) produce("key-" + std::to_string(i % 3), std::string(40, 'x'));
    roll();
    compact();
    const auto before = look_at(*log_).records;
    const auto clean_to = log_->compaction_sight().clean_to;
    EXPECT_GT(clean_to, base::Offset{0});
    reopen(true);
    EXPECT_EQ(look_at(*log_).records, before);
    EXPECT_EQ(log_->compaction_sight().clean_to, clean_to);
    produce("after", "restart");
    reopen(false);
    EXPECT_EQ(log_->compaction_sight().clean_to, clean_to);
    EXPECT_EQ(look_at(*log_).records.size(), before.size() + 1);
}

TEST_F(CompactionTest, SecondPassFindsNothingDirty) {
    open();
    produce("a", "1");
    roll();
    compact();
    const auto again = cleaner_.run(*log_);
    ASSERT_TRUE(again.has_value());
    EXPECT_FALSE(*again);
}

TEST_F(CompactionTest, CleanRecordsGoWhenTheirKeyComesAgain) {
    open();
    produce("a", "1");
    produce("b", "1");
    roll();
    compact();
    produce("a", "2");
    roll();
    compact();
    EXPECT_EQ(offsets().size(), 2u);
    EXPECT_EQ(offsets().front(), 1);
}

TEST_F(CompactionTest, SmallNeighboursBecomeOneSegment) {
    open();
    for (int i = 0; i < 40; ++i) produce("same", std::string(40, 'x'));
    roll();
    const auto before = log_->view().sealed->size();
    compact();  // each segment shrinks; they were full, so none could be joined
    produce("other", "x");
    roll();
    compact();
    EXPECT_LT(log_->view().sealed->size(), before / 2);
}

TEST_F(CompactionTest, TombstoneStaysUntilItsHorizon) {
    config_.delete_retention_ms = 1000;
    open();
    produce("a", "1");
    produce("a", std::nullopt);
    roll();
    compact();
    EXPECT_EQ(offsets(), (std::vector<std::int64_t>{1})) << "the tombstone stays";
    const auto header = look_at(*log_).batches.front();
    EXPECT_EQ(header.delete_horizon_ms(), clock_.wall_ms() + 1000);

    clock_.advance(std::chrono::milliseconds(999));
    produce("b", "1");
    roll();
    compact();
    EXPECT_EQ(offsets().front(), 1) << "too early";
    EXPECT_EQ(look_at(*log_).batches.front().delete_horizon_ms(), header.delete_horizon_ms());

    clock_.advance(std::chrono::milliseconds(1));
    produce("c", "1");
    roll();
    compact();
    EXPECT_NE(offsets().front(), 1) << "its time has come";
}

TEST_F(CompactionTest, YoungRecordsStay) {
    config_.min_compaction_lag_ms = 1000;
    open();
    produce("a", "1");
    produce("a", "2");
    roll();
    const auto now = cleaner_.run(*log_);
    ASSERT_TRUE(now.has_value());
    EXPECT_FALSE(*now) << "all of it is too young";
    clock_.advance(std::chrono::seconds(2));
    produce("a", "3");
    roll();
    compact();
    EXPECT_EQ(offsets().front(), 1);
    EXPECT_EQ(offsets().size(), 2u) << "the young segment's record superseded nothing";
}

TEST_F(CompactionTest, LastBatchOfAProducerStaysWithoutRecords) {
    open();
    produce({.records = {{"a", "1"}}, .producer_id = 7, .producer_epoch = 0, .sequence = 0});
    produce({.records = {{"a", "2"}}, .producer_id = 7, .producer_epoch = 0, .sequence = 1});
    produce("a", "3");
    roll();
    compact();
    const auto seen = look_at(*log_);
    ASSERT_GE(seen.batches.size(), 2u);
    EXPECT_EQ(seen.batches[0].producer_id, 7);
    EXPECT_EQ(seen.batches[0].base_offset, 1);
    EXPECT_EQ(seen.batches[0].count, 0);
    EXPECT_EQ(seen.batches[0].last_sequence(), 1);
    EXPECT_EQ(offsets(), (std::vector<std::int64_t>{2}));
    reopen(false);
    produce({.records = {{"a", "4"}}, .producer_id = 7, .producer_epoch = 0, .sequence = 2});
}

TEST_F(CompactionTest, BatchesInEveryCodecStayReadable) {
    config_.segment_bytes = 4000;
    for (const auto codec : {wire::Compression::kGzip, wire::Compression::kSnappy,
                             wire::Compression::kLz4, wire::Compression::kZstd}) {
        volume_.crash();
        log_.reset();
        broker_ = std::make_unique<Broker>(volume_, clock_);
        open();
        const std::string value(300, 'v');
        const auto start = log_->view().high_watermark.value();
        produce({.records = {{"a", value}, {"b", value}, {"c", value}}, .compression = codec});
        produce({.records = {{"b", value + "2"}}, .compression = codec});
        roll();
        compact();
        const auto seen = look_at(*log_);
        const auto batch = std::ranges::find(seen.batches, start, &wire::BatchHeader::base_offset);
        ASSERT_NE(batch, seen.batches.end());
        EXPECT_EQ(batch->compression(), codec);
        EXPECT_EQ(batch->count, 2);
        EXPECT_EQ(batch->last_offset(), start + 2);
        const auto record = std::ranges::find(seen.records, start + 3, &SeenRecord::offset);
        ASSERT_NE(record, seen.records.end());
        EXPECT_EQ(record->value, value + "2");
    }
}

TEST_F(CompactionTest, MapThatIsTooSmallTakesSeveralPasses) {
    open();
    for (int i = 0; i < 60; ++i) produce("key-" + std::to_string(i % 20), std::to_string(i));
    roll();
    cleaner_.means.map_bytes_max = 8 * OffsetMap::kBytesPerSlot;
    int passes = 0;
    for (;; ++passes) {
        const auto done = cleaner_.run(*log_);
        ASSERT_TRUE(done.has_value()) << done.error().context;
        if (!*done) break;
        ASSERT_LT(passes, 100) << "no progress";
    }
    EXPECT_GT(passes, 5);
    EXPECT_EQ(offsets().size(), 20u);
}

TEST_F(CompactionTest, AReaderInAnOldSegmentGoesOn) {
    open();
    for (int i = 0; i < 6; ++i) produce("same", std::to_string(i));
    roll();
    const auto held = log_->read({.from = base::Offset{0}, .max_bytes = 1000}, Patience::kMayBlock);
    ASSERT_TRUE(held.has_value());
    std::vector<std::byte> before(held->records.length);
    ASSERT_TRUE(
        read_exactly(*held->records.file, held->records.offset, before, Patience::kMayBlock));
    compact();
    clock_.advance(std::chrono::minutes(2));
    log_->reclaim();
    std::vector<std::byte> after(held->records.length);
    ASSERT_TRUE(
        read_exactly(*held->records.file, held->records.offset, after, Patience::kMayBlock));
    EXPECT_EQ(after, before);
    // Where it goes on is a hole by now.
    const auto next = log_->read({.from = base::Offset{2}, .max_bytes = 1000}, Patience::kMayBlock);
    ASSERT_TRUE(next.has_value());
    EXPECT_GT(next->records.length, 0u);
}

TEST_F(CompactionTest, ReplacedFilesGoAfterTheDelay) {
    open();
    produce("a", "1");
    roll();
    const auto old = log_->view().sealed->front().segment->path();
    compact();
    EXPECT_NE(log_->view().sealed->front().segment->path(), old);
    log_->reclaim();
    EXPECT_TRUE(volume_.open(old, OpenMode::kRead).has_value()) << "a reader may still need it";
    clock_.advance(std::chrono::milliseconds(config_.file_delete_delay_ms));
    log_->reclaim();
    EXPECT_EQ(volume_.open(old, OpenMode::kRead).error().code, ErrorCode::kNotFound);
    const auto compacted = log_->view().sealed->front().segment;
    produce("a", "2");
    roll();
    compact();
    clock_.advance(std::chrono::milliseconds(config_.file_delete_delay_ms));
    log_->reclaim();
    EXPECT_EQ(volume_.list(compacted->directory()).error().code, ErrorCode::kNotFound)
        << "the directory of the compaction before goes too";
    EXPECT_FALSE(look_at(*log_).records.empty());
}

TEST_F(CompactionTest, WhatAFailedCompactionLeftIsSwept) {
    open();
    produce("a", "1");
    produce("a", "2");
    roll();
    const auto before = look_at(*log_).records;
    volume_.fail_nth(Operation::kWrite, 3, {.code = ErrorCode::kNoSpace});
    const auto failed = cleaner_.run(*log_);
    ASSERT_FALSE(failed.has_value());
    EXPECT_EQ(failed.error().code, ErrorCode::kNoSpace);
    EXPECT_EQ(look_at(*log_).records, before);
    EXPECT_TRUE(log_->has_unfinished_compactions());
    EXPECT_FALSE(log_->failure().has_value()) << "no space for a compaction is no end of a log";
    reopen(false);
    EXPECT_TRUE(log_->has_unfinished_compactions()) << "the next epoch knows of it";
    produce("b", "1");
    roll();
    compact();
    EXPECT_FALSE(log_->has_unfinished_compactions());
    EXPECT_EQ(volume_.list("topic.AAAAAAAAAAAAAAAAAAAAAA/0/00000000/c1").error().code,
              ErrorCode::kNotFound);
}

TEST_F(CompactionTest, FencedOwnerChangesNothingThatReadersSee) {
    open();
    produce("a", "1");
    produce("a", "2");
    roll();
    broker_->session.fenced = true;
    const auto failed = cleaner_.run(*log_);
    ASSERT_FALSE(failed.has_value());
    EXPECT_EQ(failed.error().code, ErrorCode::kFenced);
}

TEST_F(CompactionTest, LogThatEndsWhileItsLineIsWrittenDoesNotActOnIt) {
    for (const int line : {1, 2}) {  // that of the intent, that of the swap
        SCOPED_TRACE(line);
        open();
        produce("a", "1");
        produce("a", "2");
        roll();
        const auto before = log_->view().sealed;
        int lines = 0;
        bool makes_directory = false;
        volume_.set_hook([&](const MemoryVolume::Step& step) -> std::optional<Fault> {
            if (step.operation == Operation::kSync && step.path.ends_with(".jsonl") &&
                ++lines == line)
                log_->abandon(ErrorCode::kStalled);
            if (step.operation == Operation::kMakeDirectory) makes_directory = true;
            return std::nullopt;
        });
        const auto failed = cleaner_.run(*log_);
        volume_.set_hook({});
        ASSERT_FALSE(failed.has_value());
        EXPECT_EQ(failed.error().code, ErrorCode::kStalled);
        EXPECT_EQ(lines, line);
        EXPECT_EQ(makes_directory, line == 2);
        EXPECT_EQ(log_->view().sealed, before);
        reopen(false);
        EXPECT_FALSE(look_at(*log_).records.empty());
        log_->abandon(ErrorCode::kClosed);
    }
}

TEST_F(CompactionTest, DamageIsNamedAndNothingIsRewritten) {
    open();
    produce("a", "1");
    produce("a", "2");
    roll();
    const auto path = log_->view().sealed->front().segment->path();
    auto file = volume_.open(path, OpenMode::kReadWrite);
    ASSERT_TRUE(file.has_value());
    const std::byte bad[] = {std::byte{0xFF}};
    const base::ByteView piece(bad);
    ASSERT_TRUE((*file)->write_at(70, {&piece, 1}));
    const auto failed = cleaner_.run(*log_);
    ASSERT_FALSE(failed.has_value());
    EXPECT_EQ(failed.error().code, ErrorCode::kCorrupt);
    EXPECT_NE(failed.error().context.find(path), std::string::npos);
    EXPECT_EQ(log_->view().sealed->front().segment->path(), path);
}

TEST_F(CompactionTest, AConsumerInAHoleComesToTheEnd) {
    open();
    for (int i = 0; i < 100; ++i) produce("same", std::string(30, 'x'));
    roll();
    compact();
    const auto end = log_->view().high_watermark;
    for (base::Offset from{0}; from < end; ++from) {
        const auto read = log_->read({.from = from, .max_bytes = 10'000}, Patience::kMayBlock);
        ASSERT_TRUE(read.has_value()) << read.error().context;
        ASSERT_GT(read->records.length, 0u) << "stalls at " << from.value();
    }
}

TEST_F(CompactionTest, ReadersSkipASegmentWithoutRecords) {
    open();
    produce({.records = {{"a", "1"}}, .producer_id = 7, .producer_epoch = 0, .sequence = 0});
    while (log_->view().sealed->empty()) produce("x", std::string(50, 'x'));
    produce("a", "2");
    roll();
    compact();
    const auto check = [&] {
        const auto first = log_->view().sealed->front().facts;
        EXPECT_FALSE(first.has_records);
        EXPECT_EQ(first.base, base::Offset{0});
        EXPECT_GT(first.bytes, 0u) << "the producer's last sequence is kept there";
        const auto read =
            log_->read({.from = base::Offset{0}, .max_bytes = 1}, Patience::kMayBlock);
        ASSERT_TRUE(read.has_value());
        std::vector<std::byte> bytes(read->records.length);
        ASSERT_TRUE(
            read_exactly(*read->records.file, read->records.offset, bytes, Patience::kMayBlock));
        EXPECT_FALSE(look_at(bytes).records.empty());
    };
    check();
    reopen();
    check();
}

// ---- random logs against a model --------------------------------------------------------------

class RandomLog : public CompactionTest {
protected:
    void run(std::uint64_t seed) {
        SCOPED_TRACE("KAAS_SEED=" + std::to_string(seed));
        random_.seed(seed);
        config_.segment_bytes = static_cast<std::int32_t>(pick(600, 3000));
        config_.index_interval_bytes = static_cast<std::int32_t>(pick(0, 300));
        config_.delete_retention_ms = pick(0, 1) * pick(1, 5000);
        config_.min_compaction_lag_ms = pick(0, 2) == 0 ? pick(1, 3000) : 0;
        config_.file_delete_delay_ms = pick(0, 2000);
        cleaner_.means.map_bytes_max =
            static_cast<std::size_t>(pick(2, 60)) * OffsetMap::kBytesPerSlot;
        cleaner_.means.io_buffer_bytes = static_cast<std::size_t>(pick(1, 600));
        open();
        for (int turn = 0; turn < 60 && !HasFatalFailure(); ++turn) {
            switch (pick(0, 9)) {
                case 0: compact_and_look(); break;
                case 1: clock_.advance(std::chrono::milliseconds(pick(1, 3000))); break;
                case 2: log_->reclaim(); break;
                case 3: reopen(pick(0, 1) == 0); break;
                default: produce_some(); break;
            }
        }
        compact_and_look();
    }

private:
    [[nodiscard]] std::int64_t pick(std::int64_t low, std::int64_t high) {
        return std::uniform_int_distribution(low, high)(random_);
    }

    void produce_some() {
        KeyedBatch batch{.records = {},
                         .timestamp_ms = clock_.wall_ms(),
                         .compression = static_cast<wire::Compression>(pick(0, 4))};
        if (pick(0, 2) == 0) {
            batch.producer_id = pick(1, 3);
            batch.producer_epoch = 0;
            batch.sequence = sequences_[batch.producer_id];
        }
        for (auto count = pick(1, 6); count > 0; --count) {
            const auto key = "key-" + std::to_string(pick(0, 12));
            std::optional<std::string> value;
            if (pick(0, 4) != 0) value = std::string(static_cast<std::size_t>(pick(0, 60)), 'v');
            model_.push_back({.offset = std::ssize(model_),
                              .timestamp_ms = batch.timestamp_ms + std::ssize(batch.records),
                              .key = key,
                              .value = value});
            batch.records.push_back({key, value});
        }
        if (batch.producer_id >= 0)
            sequences_[batch.producer_id] += static_cast<std::int32_t>(batch.records.size());
        produce(batch);
    }

    void compact_and_look() {
        const auto done = cleaner_.run(*log_);
        ASSERT_TRUE(done.has_value()) << done.error().context;
        const auto seen = look_at(*log_).records;
        const auto clean_to = log_->compaction_sight().clean_to.value();
        std::map<std::string, std::int64_t> last_of_clean;
        std::map<std::string, std::int64_t> last;
        for (const auto& record : model_) {
            last[record.key] = record.offset;
            if (record.offset < clean_to) last_of_clean[record.key] = record.offset;
        }
        std::size_t at = 0;
        for (const auto& record : model_) {
            const bool is_there = at < seen.size() && seen[at].offset == record.offset;
            if (is_there) {
                EXPECT_EQ(seen[at], record) << "a record changed";
                ++at;
            }
            const bool may_go = record.offset < clean_to &&
                                (record.offset < last_of_clean[record.key] || !record.value);
            const bool must_go =
                record.offset < clean_to && *done && record.offset < last_of_clean[record.key];
            ASSERT_TRUE(is_there || may_go) << "offset " << record.offset << " is gone";
            ASSERT_FALSE(is_there && must_go) << "offset " << record.offset << " is still there";
        }
        ASSERT_EQ(at, seen.size()) << "records that nobody wrote, or out of order";
    }

    std::mt19937_64 random_;
    std::vector<SeenRecord> model_;
    std::map<std::int64_t, std::int32_t> sequences_;
};

TEST_F(RandomLog, SurvivorsEqualTheModel) {
    if (const auto* seed = std::getenv("KAAS_SEED")) return run(std::strtoull(seed, nullptr, 10));
    run(std::random_device{}());
}

class ManyRandomLogs : public RandomLog, public ::testing::WithParamInterface<std::uint64_t> {};
TEST_P(ManyRandomLogs, SurvivorsEqualTheModel) { run(GetParam()); }
INSTANTIATE_TEST_SUITE_P(Seeds, ManyRandomLogs, ::testing::Range<std::uint64_t>(1, 301));

}  // namespace
}  // namespace kaas::storage
