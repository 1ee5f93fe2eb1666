// What a log says of bytes that changed under it after they were written.
#include "base/bytes.h"
#include "base/clock.h"
#include "base/executor.h"
#include "storage/error.h"
#include "storage/memory_volume.h"
#include "storage/partition_log.h"
#include "storage/partition_log_fixture.h"
#include "storage/read_check.h"
#include "storage/segment.h"
#include "storage/sparse_index.h"
#include "storage/testing_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace kaas::storage {
namespace {

using testing::Broker;
using ::testing::HasSubstr;

/// A log of two batches of two records each: offsets 0 to 3.
class DamagedLog : public ::testing::Test {
protected:
    void SetUp() override {
        auto opened = broker_.open(0);
        ASSERT_TRUE(opened);
        log_ = *opened;
        for (int i = 0; i < 2; ++i) {
            const auto bytes = testing::make_batch({.records = 2});
            batch_bytes_ = bytes.size();
            ASSERT_TRUE(
                log_->append(testing::to_append(bytes, Acks::kAll, executor_, [](auto) {})));
        }
        broker_.commit_all();
    }

    /// Overwrites the base offset of the second batch, which no checksum covers.
    void set_second_base_offset(std::int64_t offset) {
        auto file = volume_.open(kLogFile, OpenMode::kReadWrite);
        ASSERT_TRUE(file);
        std::byte bytes[sizeof(offset)];
        base::store_be(bytes, offset);
        const base::ByteView piece(bytes);
        ASSERT_TRUE((*file)->write_at(batch_bytes_, {&piece, 1}));
    }

    [[nodiscard]] Result<ReadResult> read_from(std::int64_t offset) {
        return log_->read({.from = base::Offset{offset}, .max_bytes = 1 << 20},
                          Patience::kMayBlock);
    }

    static constexpr auto kLogFile =
        "topic.AAAAAAAAAAAAAAAAAAAAAA/0/00000000/00000000000000000000.log";

    MemoryVolume volume_;
    base::ManualClock clock_;
    base::InlineExecutor executor_;
    Broker broker_{volume_, clock_};
    std::shared_ptr<PartitionLog> log_;
    std::size_t batch_bytes_ = 0;
};

TEST_F(DamagedLog, RefusesABatchThatReachesBeyondItsSegment) {
    set_second_base_offset(1 << 20);
    const auto read = read_from(3);
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().code, ErrorCode::kCorrupt);
    EXPECT_THAT(read.error().context, HasSubstr(kLogFile));
    EXPECT_THAT(read.error().context, HasSubstr(std::to_string(batch_bytes_)));
}

TEST_F(DamagedLog, RefusesABatchThatGoesBackInOffsets) {
    set_second_base_offset(1);
    const auto read = read_from(3);
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().code, ErrorCode::kCorrupt);
}

TEST_F(DamagedLog, ServesWhatIsBefore) {
    set_second_base_offset(1 << 20);
    const auto read = log_->read({.from = base::Offset{1}, .max_bytes = 1}, Patience::kMayBlock);
    ASSERT_TRUE(read);
    EXPECT_EQ(read->records.offset, 0U);
    EXPECT_EQ(read->records.length, batch_bytes_);
}

TEST_F(DamagedLog, NoReadGoesBeyondABatchThatIsOutOfOrder) {
    set_second_base_offset(1 << 20);
    ASSERT_TRUE(log_->append(testing::to_append(testing::make_batch({.records = 2}), Acks::kAll,
                                                executor_, [](auto) {})));
    broker_.commit_all();
    // Cut within the third batch: before the damaged one, and its offset is not remembered.
    const auto read = log_->read({.from = base::Offset{0}, .max_bytes = 2 * batch_bytes_ + 1},
                                 Patience::kMayBlock);
    ASSERT_TRUE(read);
    EXPECT_EQ(read->records.length, batch_bytes_);
}

/// Writes a log of many small batches, damages its .timeindex in every way that one byte can be
/// wrong, and looks for a time behind each.
TEST(DamagedTimeIndex, SkipsNothing) {
    MemoryVolume volume;
    base::ManualClock clock;
    Broker broker(volume, clock);
    LogConfig config;
    config.index_interval_bytes = 0;
    base::InlineExecutor executor;
    auto log = *broker.open(0, config);
    constexpr std::int64_t kBatches = 8;
    for (std::int64_t i = 0; i < kBatches; ++i) {
        const auto bytes = testing::make_batch({.timestamp_ms = 1000 + 10 * i});
        ASSERT_TRUE(log->append(testing::to_append(bytes, Acks::kAll, executor, [](auto) {})));
        broker.commit_all();
    }
    ASSERT_TRUE(log->release(std::chrono::milliseconds(0)));
    const std::string path =
        "topic.AAAAAAAAAAAAAAAAAAAAAA/0/00000000/00000000000000000000.timeindex";
    const auto entries = *read_whole(volume, path, 1 << 20);
    ASSERT_GE(entries.size(), 5 * TimeEntry::kBytes);
    auto file = *volume.open(path, OpenMode::kReadWrite);
    for (std::size_t at = 0; at < entries.size(); ++at) {
        for (const int bit : {1, 2, 4, 8, 16, 32, 64, 128}) {
            auto damaged = entries;
            damaged[at] = static_cast<char>(damaged[at] ^ bit);
            base::ByteView piece = base::as_bytes(damaged);
            ASSERT_TRUE(file->write_at(0, {&piece, 1}));
            Broker next(volume, clock);
            auto reader = *next.open(1);
            for (std::int64_t i = 0; i < kBatches; ++i) {
                const auto found =
                    reader->first_at_or_after(1000 + (10 * i) - 5, Isolation::kReadUncommitted);
                ASSERT_TRUE(found && *found) << at << " ^ " << bit;
                ASSERT_EQ((*found)->offset, base::Offset{i}) << at << " ^ " << bit;
            }
        }
    }
}

/// A log of three segments, which the next owner has opened, and whose bytes change then.
class FlippedLog : public testing::PartitionLogTest {
protected:
    void SetUp() override {
        config_.segment_bytes = 600;
        config_.index_interval_bytes = 0;
        auto log = open(0, config_);
        for (int i = 0; i < static_cast<int>(kBatches); ++i) {
            append_durably(*log, {.records = 2,
                                  .timestamp_ms = kTime + 10 * i,
                                  .value = std::string(1, static_cast<char>('a' + i))});
        }
        ASSERT_TRUE(log->release(std::chrono::seconds(1)));
        ASSERT_EQ(log->view().sealed->size(), 2U);
        const auto& middle = log->view().sealed->back();
        path_ = middle.segment->path();
        facts_ = middle.facts;
        restart();
        const auto bytes = testing::read_all(*open(1, config_), base::Offset{0});
        ASSERT_TRUE(bytes);
        good_ = *bytes;
        batch_bytes_ = good_.size() / kBatches;
        restart();
    }

    /// Flips bits of each byte of a file in turn, and gives each change to a new owner and `look`.
    template <class Look>
    void for_each_flip(const std::string& path, Look look) {
        for (const auto bits : {std::byte{0x55}, std::byte{0x01}}) flip_each(path, bits, look);
    }
    template <class Look>
    void flip_each(const std::string& path, std::byte bits, Look look) {
        auto file = volume_.open(path, OpenMode::kReadWrite);
        ASSERT_TRUE(file);
        const auto size = *(*file)->size();
        ASSERT_GT(size, 0U);
        const auto flip = [&](std::uint64_t at) {
            std::byte byte{};
            const base::ByteView piece(&byte, 1);
            ASSERT_TRUE((*file)->read_at(at, {&byte, 1}));
            byte ^= bits;
            ASSERT_TRUE((*file)->write_at(at, {&piece, 1}));
        };
        for (std::uint64_t at = 0; at < size && !HasFatalFailure(); ++at) {
            SCOPED_TRACE(path + " at " + std::to_string(at));
            flip(at);
            Broker broker(volume_, clock_);
            auto log = broker.open(2, config_);
            ASSERT_TRUE(log) << log.error().context;
            look(**log, at);
            flip(at);
        }
    }

    [[nodiscard]] static Result<ReadResult> read_from(PartitionLog& log, base::Offset from,
                                                      std::uint64_t max_bytes = 1,
                                                      Patience patience = Patience::kMayBlock) {
        return log.read({.from = from, .max_bytes = max_bytes}, patience);
    }
    /// The first offset of a batch.
    [[nodiscard]] static base::Offset base_of(std::uint64_t batch) {
        return base::Offset{static_cast<std::int64_t>(2 * batch)};
    }

    /// Reads batch by batch from the start. Empty when all of it is there and as it was; else how
    /// it ended. What was served is as it was.
    [[nodiscard]] std::optional<Error> read_on(PartitionLog& log) {
        for (std::uint64_t batch = 0; batch < kBatches; ++batch) {
            const auto read = read_from(log, base_of(batch));
            if (!read) return read.error();
            std::vector<std::byte> bytes(read->records.length);
            EXPECT_EQ(bytes.size(), batch_bytes_);
            EXPECT_TRUE(read_exactly(*read->records.file, read->records.offset, bytes,
                                     Patience::kMayBlock));
            EXPECT_TRUE(std::ranges::equal(
                bytes, base::ByteView(good_).subspan(batch * batch_bytes_, batch_bytes_)))
                << "served as good data: batch " << batch;
        }
        return std::nullopt;
    }

    /// Makes a file shorter, as a truncate(2) would.
    void shorten(const std::string& path, std::uint64_t bytes) {
        auto content = *read_whole(volume_, path, 1 << 20);
        content.resize(bytes);
        put(path, content);
    }
    void put(const std::string& path, const std::string& content) {
        std::ignore = volume_.unlink(path);
        auto file = volume_.create(path);
        ASSERT_TRUE(file);
        const base::ByteView piece = base::as_bytes(content);
        ASSERT_TRUE((*file)->write_at(0, {&piece, 1}));
    }

    /// The first batch of the damaged segment, counted from the log's start.
    [[nodiscard]] std::uint64_t first_batch() const {
        return static_cast<std::uint64_t>(facts_.base.value()) / 2;
    }

    static constexpr std::uint64_t kBatches = 16;
    static constexpr std::int64_t kTime = 1'700'000'000'000;
    LogConfig config_;
    std::string path_;
    SegmentFacts facts_;
    std::vector<std::byte> good_;
    std::uint64_t batch_bytes_ = 0;
};

TEST_F(FlippedLog, ABatchIsNeverServedAsGoodAndWhatIsBeforeStaysReadable) {
    for_each_flip(path_, [&](PartitionLog& log, std::uint64_t at) {
        const auto in_segment = at / batch_bytes_;
        const auto ended = read_on(log);
        ASSERT_TRUE(ended) << "served as good data";
        EXPECT_EQ(ended->code, ErrorCode::kCorrupt);
        EXPECT_THAT(ended->context,
                    HasSubstr(path_ + " at " + std::to_string(in_segment * batch_bytes_)));
        EXPECT_TRUE(log.damaged());
    });
}

TEST_F(FlippedLog, OneReadGivesWhatIsBeforeTheDamage) {
    for_each_flip(path_, [&](PartitionLog& log, std::uint64_t at) {
        const auto in_segment = at / batch_bytes_;
        const auto read = read_from(log, facts_.base, 1 << 20);
        ASSERT_EQ(read.has_value(), in_segment > 0);
        if (read) {
            EXPECT_EQ(read->records.offset, 0U);
            EXPECT_EQ(read->records.length, in_segment * batch_bytes_);
        }
        const auto damaged = read_from(log, base_of(first_batch() + in_segment), 1 << 20);
        ASSERT_FALSE(damaged);
        EXPECT_EQ(damaged.error().code, ErrorCode::kCorrupt);
        // By the entry of the batch in between: that of the damaged one leads to nothing.
        const auto behind = base_of(first_batch() + in_segment + 2);
        if (behind < facts_.end) EXPECT_TRUE(read_from(log, behind));
    });
}

TEST_F(FlippedLog, EachByteIsReadOnceBeforeItIsServed) {
    auto log = open(2, config_);
    const auto all = [&](Patience patience) {
        return read_from(*log, facts_.base, 1 << 20, patience);
    };
    int reads = 0;
    volume_.set_hook([&](const MemoryVolume::Step& step) -> std::optional<Fault> {
        if (step.operation == Operation::kRead && step.path == path_) ++reads;
        return std::nullopt;
    });
    ASSERT_FALSE(all(Patience::kNever)) << "nobody has looked at it";
    ASSERT_TRUE(all(Patience::kMayBlock));
    EXPECT_EQ(reads, 2) << "the header that the index leads to, and all";
    EXPECT_TRUE(all(Patience::kMayBlock));
    EXPECT_EQ(reads, 3) << "the header alone";
    EXPECT_TRUE(all(Patience::kNever)) << "a reactor may send it now";
    // Batch by batch, in the third segment.
    const auto next = facts_.end;
    ASSERT_TRUE(read_from(*log, next));
    ASSERT_FALSE(read_from(*log, next + 2, 1, Patience::kNever)) << "only what was asked for";
}

TEST_F(FlippedLog, WhatThisLifeAppendedIsNotReadAgain) {
    auto log = open(2, config_);
    append_durably(*log, {.records = 2});
    EXPECT_TRUE(read_from(*log, base_of(kBatches), 1 << 20, Patience::kNever));
}

TEST_F(FlippedLog, AShortenedSegmentIsServedUpToItsLastWholeBatch) {
    shorten(path_, facts_.bytes - 10);
    auto log = open(2, config_);
    const auto whole = facts_.bytes - batch_bytes_;
    const auto read = read_from(*log, facts_.base, 1 << 20);
    ASSERT_TRUE(read) << read.error().context;
    EXPECT_EQ(read->records.length, whole);
    EXPECT_FALSE(log->damaged()) << "nobody has come to it";
    const auto damaged = read_from(*log, facts_.end - 1, 1 << 20);
    ASSERT_FALSE(damaged);
    EXPECT_EQ(damaged.error().code, ErrorCode::kCorrupt);
    EXPECT_THAT(damaged.error().context, HasSubstr(path_ + " at " + std::to_string(whole)));
    EXPECT_TRUE(log->damaged());
    EXPECT_TRUE(read_from(*log, facts_.end)) << "the next segment";
}

TEST_F(FlippedLog, AMissingSegmentIsSaidUntilItIsBack) {
    const auto content = *read_whole(volume_, path_, 1 << 20);
    ASSERT_TRUE(volume_.unlink(path_));
    auto log = open(2, config_);
    const auto missing = read_from(*log, facts_.base);
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().code, ErrorCode::kCorrupt);
    EXPECT_THAT(missing.error().context, HasSubstr(path_));
    EXPECT_TRUE(log->damaged());
    EXPECT_TRUE(read_from(*log, base::Offset{0}));
    EXPECT_TRUE(read_from(*log, facts_.end));
    put(path_, content);
    EXPECT_TRUE(read_from(*log, facts_.base));
    EXPECT_FALSE(log->damaged());
}

TEST_F(FlippedLog, AFileThatShrinksWhileItIsSentIsLookedAtAgain) {
    auto log = open(2, config_);
    for (int i = 0; i < 2; ++i) append_durably(*log, {.records = 2, .value = "x"});
    const auto active = log->view().last.segment->path();
    for (const auto& [path, from, bytes] :
         {std::tuple(path_, facts_.base, facts_.bytes - 1),
          std::tuple(active, base_of(kBatches), 2 * batch_bytes_ - 1)}) {
        const auto sent = read_from(*log, from, 1 << 20);
        ASSERT_TRUE(sent);
        shorten(path, bytes);
        sent->records.file->doubt();
        const auto again = read_from(*log, from, 1 << 20, Patience::kNever);
        ASSERT_FALSE(again);
        EXPECT_EQ(again.error().code, ErrorCode::kWouldBlock);
        const auto good = read_from(*log, from, 1 << 20);
        ASSERT_TRUE(good) << good.error().context;
        EXPECT_EQ(good->records.length, bytes / batch_bytes_ * batch_bytes_);
    }
}

TEST_F(FlippedLog, AnIndexOnlyCostsTime) {
    const auto stem = path_.substr(0, path_.size() - 4);
    for_each_flip(stem + ".index", [&](PartitionLog& log, std::uint64_t) {
        // Backwards, so that no place is known from the read before.
        for (std::int64_t from = 2 * kBatches - 1; from >= 0; --from) {
            const auto read =
                log.read({.from = base::Offset{from}, .max_bytes = 1}, Patience::kMayBlock);
            ASSERT_TRUE(read) << read.error().context;
            std::byte offset[8];
            ASSERT_TRUE(read_exactly(*read->records.file, read->records.offset, offset,
                                     Patience::kMayBlock));
            ASSERT_EQ(base::load_be<std::int64_t>(offset), from / 2 * 2);
            ASSERT_EQ(read->records.length, batch_bytes_);
        }
    });
}

TEST(CheckedRanges, GrowTogetherAndStayFew) {
    CheckedRanges ranges;
    EXPECT_FALSE(ranges.cover(0, 1));
    ranges.add(100, 200);
    ranges.add(300, 400);
    EXPECT_TRUE(ranges.cover(100, 200));
    EXPECT_FALSE(ranges.cover(99, 200));
    EXPECT_FALSE(ranges.cover(100, 201));
    EXPECT_FALSE(ranges.cover(150, 350));
    ranges.add(200, 300);
    EXPECT_TRUE(ranges.cover(100, 400));
    ranges.add(50, 450);
    EXPECT_TRUE(ranges.cover(50, 450));
    ranges.add(200, 300);
    EXPECT_TRUE(ranges.cover(50, 450));
    for (std::uint64_t i = 1; i <= CheckedRanges::kMost; ++i)
        ranges.add(1000 * i, 1000 * i + 10 * i);
    EXPECT_FALSE(ranges.cover(1000, 1010)) << "the shortest went";
    EXPECT_TRUE(ranges.cover(2000, 2020));
    EXPECT_TRUE(ranges.cover(50, 450));
}

TEST(Damages, AreToldOnceEachAndEndWithTheirRecords) {
    Damages damages;
    EXPECT_FALSE(damages.any(base::Offset{0}));
    EXPECT_TRUE(damages.note(base::Offset{7}, "a.log at 70: wrong"));
    EXPECT_FALSE(damages.note(base::Offset{7}, "a.log at 70: wrong"));
    EXPECT_TRUE(damages.note(base::Offset{9}, "a.log at 90: wrong"));
    EXPECT_TRUE(damages.any(base::Offset{9}));
    EXPECT_FALSE(damages.any(base::Offset{10})) << "deleted";
    damages.mended(base::Offset{9});
    EXPECT_FALSE(damages.any(base::Offset{8}));
    EXPECT_TRUE(damages.note(base::Offset{9}, "a.log at 90: wrong")) << "again";
}

}  // namespace
}  // namespace kaas::storage
