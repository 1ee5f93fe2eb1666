// Goal: readers get whole batches, what they may see and nothing else, from memory where they can;
// waiters wake once; times are found to the record. Method: one broker on a volume in memory.

#include "storage/partition_log.h"
#include "storage/partition_log_fixture.h"
#include "storage/testing_log.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace kaas::storage {
namespace {

using testing::make_batch;
using testing::PartitionLogTest;
using testing::read_values;

// ---- reading ----------------------------------------------------------------------------------

TEST_F(PartitionLogTest, AReadIsCutAfterAWholeBatch) {
    auto log = open(0);
    const auto bytes = make_batch({.value_bytes = 100}).size();
    for (int i = 0; i < 5; ++i) append_durably(*log, {.value_bytes = 100});
    const auto length = [&](std::uint64_t max_bytes, bool at_least_one = true) {
        return log
            ->read({.from = base::Offset{1},
                    .max_bytes = max_bytes,
                    .at_least_one_batch = at_least_one},
                   Patience::kNever)
            ->records.length;
    };
    EXPECT_EQ(length(1), bytes);
    EXPECT_EQ(length(1, false), 0);
    EXPECT_EQ(length(0, false), 0);
    EXPECT_EQ(length(2 * bytes - 1), bytes);
    EXPECT_EQ(length(2 * bytes), 2 * bytes);
    EXPECT_EQ(length(100 * bytes), 4 * bytes);
}

TEST_F(PartitionLogTest, AReadSaysWhatIsAvailableBeyondItsWholeBatches) {
    auto log = open(0);
    const auto bytes = make_batch({.value_bytes = 100}).size();
    for (int i = 0; i < 3; ++i) append_durably(*log, {.value_bytes = 100});
    const auto available = [&](std::uint64_t max_bytes, bool at_least_one = true) {
        return log
            ->read({.from = base::Offset{1},
                    .max_bytes = max_bytes,
                    .at_least_one_batch = at_least_one},
                   Patience::kNever)
            ->available_bytes;
    };
    EXPECT_EQ(available(1), bytes);
    EXPECT_EQ(available(1, false), 1);
    EXPECT_EQ(available(bytes + 10), bytes + 10);
    EXPECT_EQ(available(100 * bytes), 2 * bytes);
    LogConfig config;
    config.segment_bytes = static_cast<std::int32_t>(4 * bytes);
    log->set_config(config);
    for (int i = 0; i < 2; ++i) append_durably(*log, {.value_bytes = 100});
    ASSERT_EQ(log->view().sealed->size(), 1U);
    EXPECT_EQ(available(100 * bytes), 100 * bytes) << "another segment follows";
}

TEST_F(PartitionLogTest, EveryOffsetIsFoundAcrossSegmentsAndRestarts) {
    LogConfig config;
    config.segment_bytes = 1000;
    config.index_interval_bytes = 150;
    auto log = open(0, config);
    std::vector<std::string> values;
    for (int i = 0; i < 60; ++i) {
        values.push_back(std::to_string(i));
        append_durably(*log, {.value = values.back()});
    }
    const auto check = [&] {
        EXPECT_GT(log->view().sealed->size(), 3);
        for (int i = 0; i < 60; ++i) {
            const auto read =
                log->read({.from = base::Offset{i}, .max_bytes = 1}, Patience::kMayBlock);
            ASSERT_TRUE(read) << read.error().context;
            std::byte header[wire::BatchHeader::kBytes];
            ASSERT_TRUE(read_exactly(*read->records.file, read->records.offset, header,
                                     Patience::kMayBlock));
            EXPECT_EQ(wire::BatchHeader::parse(header)->base_offset, i);
        }
        EXPECT_EQ(*read_values(*log), values);
    };
    check();
    ASSERT_TRUE(log->release(std::chrono::seconds(1)));
    restart();
    log = open(1, config);
    check();
}

TEST_F(PartitionLogTest, AWrongIndexOnlyCostsTime) {
    LogConfig config;
    config.index_interval_bytes = 0;
    auto log = open(0, config);
    for (int i = 0; i < 20; ++i) append_durably(*log, {.value = std::to_string(i)});
    ASSERT_TRUE(log->release(std::chrono::seconds(1)));
    auto index = *volume_.open("topic.AAAAAAAAAAAAAAAAAAAAAA/0/00000000/00000000000000000000.index",
                               OpenMode::kReadWrite);
    for (std::uint64_t at = 0; at < *index->size(); at += 8) {
        std::byte position[4];
        base::store_be<std::int32_t>(position, 33);
        const base::ByteView piece(position);
        ASSERT_TRUE(index->write_at(at + 4, {&piece, 1}));
    }
    restart();
    log = open(1, config);
    for (int i = 0; i < 20; ++i) {
        const auto read = log->read({.from = base::Offset{i}, .max_bytes = 1}, Patience::kMayBlock);
        ASSERT_TRUE(read) << read.error().context;
        std::byte offset[8];
        ASSERT_TRUE(
            read_exactly(*read->records.file, read->records.offset, offset, Patience::kMayBlock));
        EXPECT_EQ(base::load_be<std::int64_t>(offset), i);
    }
    const auto cut = log->read({.from = base::Offset{0}, .max_bytes = 100}, Patience::kMayBlock);
    ASSERT_TRUE(cut) << cut.error().context;
    EXPECT_EQ(cut->records.length, make_batch({.value = "0"}).size());
}

TEST_F(PartitionLogTest, OffsetsOutsideAreToldOnlyAfterACheck) {
    auto log = open(0);
    append_durably(*log, {});
    for (const std::int64_t offset : {-1, 2, 100}) {
        const auto at = base::Offset{offset};
        EXPECT_EQ(log->read({.from = at}, Patience::kNever).error().code, ErrorCode::kWouldBlock);
        EXPECT_EQ(log->read({.from = at}, Patience::kMayBlock).error().code,
                  ErrorCode::kOffsetOutOfRange);
    }
    EXPECT_EQ(log->read({.from = base::Offset{1}}, Patience::kNever)->records.length, 0);
    broker_->session.fenced = true;
    EXPECT_EQ(log->read({.from = base::Offset{9}}, Patience::kMayBlock).error().code,
              ErrorCode::kFenced);
}

TEST_F(PartitionLogTest, ATailReadTouchesNoFileEvenOnARemoteVolume) {
    volume_.set_local(false);
    auto log = open(0);
    append_durably(*log, {});
    append_durably(*log, {});
    const auto steps = volume_.steps();
    const auto read = log->read({.from = base::Offset{1}, .max_bytes = 1 << 20}, Patience::kNever);
    ASSERT_TRUE(read) << read.error().context;
    EXPECT_GT(read->records.length, 0);
    EXPECT_EQ(volume_.steps(), steps);
    EXPECT_EQ(log->read({.from = base::Offset{0}, .max_bytes = 1}, Patience::kNever).error().code,
              ErrorCode::kWouldBlock);
    EXPECT_EQ(volume_.steps(), steps);
}

TEST_F(PartitionLogTest, AColdReadGoesToThePool) {
    LogConfig config;
    config.segment_bytes = 1000;
    auto log = open(0, config);
    for (int i = 0; i < 30; ++i) append_durably(*log, {});
    ASSERT_TRUE(log->release(std::chrono::seconds(1)));
    restart();
    log = open(1, config);
    const Read read{.from = base::Offset{4}, .max_bytes = 100};
    EXPECT_EQ(log->read(read, Patience::kNever).error().code, ErrorCode::kWouldBlock);
    ASSERT_TRUE(log->read(read, Patience::kMayBlock));
    EXPECT_TRUE(log->read(read, Patience::kNever));
    volume_.set_cached(false);
    const Read another{.from = base::Offset{2}, .max_bytes = 100};
    EXPECT_EQ(log->read(another, Patience::kNever).error().code, ErrorCode::kWouldBlock);
}

TEST_F(PartitionLogTest, CommittedReadsStopAtTheOpenTransaction) {
    auto log = open(0);
    append_durably(*log, {.records = 2});
    append_durably(*log,
                   {.producer_id = 1, .producer_epoch = 0, .sequence = 0, .transactional = true});
    append_durably(*log, {});
    EXPECT_EQ(log->view().last_stable_offset, base::Offset{2});
    EXPECT_EQ(log->latest(Isolation::kReadCommitted)->offset, base::Offset{2});
    EXPECT_EQ((*log->of_max_timestamp(Isolation::kReadCommitted))->offset, base::Offset{1});
    EXPECT_EQ(log->latest(Isolation::kReadUncommitted)->offset, base::Offset{4});
    const auto read =
        log->read({.max_bytes = 1 << 20, .isolation = Isolation::kReadCommitted}, Patience::kNever);
    ASSERT_TRUE(read) << read.error().context;
    EXPECT_EQ(read->records.length, make_batch({.records = 2}).size());
    EXPECT_EQ(
        log->read({.from = base::Offset{2}, .max_bytes = 9, .isolation = Isolation::kReadCommitted},
                  Patience::kNever)
            ->records.length,
        0);
}

// ---- waiting ----------------------------------------------------------------------------------

TEST_F(PartitionLogTest, AWatchFiresOnceWhenEnoughIsDurable) {
    auto log = open(0);
    append_durably(*log, {});
    const auto bytes = make_batch({}).size();
    int woken = 0;
    (void)log->watch({.beyond = base::Offset{1},
                      .min_bytes = bytes + 1,
                      .home = &broker_->executor,
                      .wake = [&] { ++woken; }});
    append_durably(*log, {});
    EXPECT_EQ(woken, 0);
    append_durably(*log, {});
    EXPECT_EQ(woken, 1);
    append_durably(*log, {});
    EXPECT_EQ(woken, 1);
}

TEST_F(PartitionLogTest, AWatchThatComesTooLateFiresAtOnceAndACancelledOneNever) {
    auto log = open(0);
    append_durably(*log, {});
    int woken = 0;
    (void)log->watch(
        {.beyond = base::Offset{0}, .home = &broker_->executor, .wake = [&] { ++woken; }});
    EXPECT_EQ(woken, 1);
    const auto id = log->watch(
        {.beyond = base::Offset{1}, .home = &broker_->executor, .wake = [&] { ++woken; }});
    log->unwatch(id);
    append_durably(*log, {});
    EXPECT_EQ(woken, 1);
    (void)log->watch(
        {.beyond = base::Offset{2}, .home = &broker_->executor, .wake = [&] { ++woken; }});
    log->abandon(ErrorCode::kClosed);
    EXPECT_EQ(woken, 2);
}

// ---- times ------------------------------------------------------------------------------------

TEST_F(PartitionLogTest, TimesAreFoundToTheRecordAlsoInsidePackedBatches) {
    LogConfig config;
    config.segment_bytes = 600;
    config.index_interval_bytes = 0;
    auto log = open(0, config);
    const std::int64_t t = 1'700'000'000'000;
    for (const auto offset : {0, 100, 50, 300, 200}) {  // unsorted on purpose
        append_durably(
            *log,
            {.records = 10, .timestamp_ms = t + offset, .compression = wire::Compression::kGzip});
    }
    const auto find = [&](std::int64_t time) {
        const auto found = log->first_at_or_after(time, Isolation::kReadUncommitted);
        EXPECT_TRUE(found) << found.error().context;
        return found && *found ? (*found)->offset.value() : -1;
    };
    EXPECT_EQ(find(0), 0);
    EXPECT_EQ(find(t + 3), 3);
    EXPECT_EQ(find(t + 10), 10);
    EXPECT_EQ(find(t + 105), 15);
    EXPECT_EQ(find(t + 110), 30);
    EXPECT_EQ(find(t + 309), 39);
    EXPECT_EQ(find(t + 310), -1);
    const auto newest = log->of_max_timestamp(Isolation::kReadUncommitted);
    ASSERT_TRUE(newest && *newest);
    EXPECT_EQ(**newest, (OffsetAndTimestamp{base::Offset{39}, t + 309, base::LeaderEpoch{0}}));
    EXPECT_GT(broker_->log_dir.time_site().decoded(), 0);
    EXPECT_EQ(broker_->log_dir.produce_site().decoded(), 0);
}

TEST_F(PartitionLogTest, AnEmptyLogHasEndsButNoTimes) {
    auto log = open(2);
    EXPECT_EQ(log->earliest()->offset, base::Offset{0});
    EXPECT_EQ(log->earliest()->leader_epoch, base::LeaderEpoch{2});
    EXPECT_EQ(log->latest(Isolation::kReadUncommitted)->leader_epoch, base::LeaderEpoch{2});
    EXPECT_FALSE(*log->of_max_timestamp(Isolation::kReadUncommitted));
    EXPECT_FALSE(*log->first_at_or_after(0, Isolation::kReadUncommitted));
    EXPECT_EQ(*log->end_of_epoch(base::LeaderEpoch{2}, -1),
              (LeaderEpochs::End{base::LeaderEpoch{2}, base::Offset{0}}));
}

}  // namespace
}  // namespace kaas::storage
