// What a log says of bytes that changed under it after they were written.
#include "base/bytes.h"
#include "base/clock.h"
#include "base/executor.h"
#include "storage/error.h"
#include "storage/memory_volume.h"
#include "storage/partition_log.h"
#include "storage/partition_log_fixture.h"
#include "storage/segment.h"
#include "storage/sparse_index.h"
#include "storage/testing_log.h"
#include "wire/record_batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
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
        for (int i = 0; i < kBatches; ++i) {
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

    /// What a client makes of a read. That offsets are not what it asked for is nothing to it: a
    /// compacted log has holes.
    [[nodiscard]] static bool client_takes(base::ByteView bytes) {
        const auto batch = wire::first_batch(bytes);
        return batch && wire::check_crc(*batch);
    }

    /// Reads batch by batch from the start. Empty when all of it is there and as it was; else how
    /// it ended. What a client would take is as it was.
    [[nodiscard]] std::optional<Error> read_as_client(PartitionLog& log) {
        std::uint64_t at = 0;
        for (auto from = base::Offset{0}; at < good_.size();) {
            const auto read = log.read({.from = from, .max_bytes = 1}, Patience::kMayBlock);
            if (!read) return read.error();
            if (read->records.length == 0) {
                ADD_FAILURE() << "nothing from " << from.value() << " on, and no word why";
                return Error{ErrorCode::kIo, "no records"};
            }
            std::vector<std::byte> bytes(read->records.length);
            if (!read_exactly(*read->records.file, read->records.offset, bytes,
                              Patience::kMayBlock))
                return Error{ErrorCode::kIo, "no bytes"};
            if (!client_takes(bytes)) return Error{ErrorCode::kCorruptBatch, "by the client"};
            const auto expected = base::ByteView(good_).subspan(at, bytes.size());
            // The leader epoch is for the broker: clients compare it with the metadata they have.
            if (!std::ranges::equal(base::ByteView(bytes).subspan(16), expected.subspan(16)) ||
                !std::ranges::equal(base::ByteView(bytes).first(12), expected.first(12)))
                ADD_FAILURE() << "served as good data from " << from.value();
            at += bytes.size();
            from = base::Offset{wire::first_batch(bytes)->header.last_offset() + 1};
        }
        return std::nullopt;
    }

    static constexpr int kBatches = 16;
    static constexpr std::int64_t kTime = 1'700'000'000'000;
    LogConfig config_;
    std::string path_;
    SegmentFacts facts_;
    std::vector<std::byte> good_;
    std::uint64_t batch_bytes_ = 0;
};

TEST_F(FlippedLog, ABatchIsNeverServedAsGoodAndWhatIsBeforeStaysReadable) {
    for_each_flip(path_, [&](PartitionLog& log, std::uint64_t at) {
        const auto in_batch = at % batch_bytes_;
        if (in_batch >= 12 && in_batch < 16) return;  // the leader epoch: `kaas log check` finds it
        if (in_batch < 8) {
            // No checksum covers the base offset: who looks for it finds the damage, who goes on
            // from the batch before does not look, and `kaas log check` does.
            const auto from = facts_.base + static_cast<std::int64_t>(at / batch_bytes_ * 2);
            const auto read = log.read({.from = from, .max_bytes = 1}, Patience::kMayBlock);
            ASSERT_FALSE(read);
            EXPECT_EQ(read.error().code, ErrorCode::kCorrupt);
            EXPECT_THAT(read.error().context, HasSubstr(path_));
            return;
        }
        const auto ended = read_as_client(log);
        ASSERT_TRUE(ended);
        if (ended->code == ErrorCode::kCorrupt) {
            EXPECT_THAT(ended->context, HasSubstr(path_));
        }
        const auto before =
            log.read({.from = base::Offset{0}, .max_bytes = 1 << 20}, Patience::kMayBlock);
        ASSERT_TRUE(before) << before.error().context;
        EXPECT_EQ(before->records.length, facts_.base.value() / 2 * batch_bytes_);
    });
}

TEST_F(FlippedLog, AnIndexOnlyCostsTime) {
    const auto stem = path_.substr(0, path_.size() - 4);
    for_each_flip(stem + ".index", [&](PartitionLog& log, std::uint64_t) {
        // Backwards, so that no place is known from the read before.
        for (auto from = 2 * kBatches - 1; from >= 0; --from) {
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

}  // namespace
}  // namespace kaas::storage
