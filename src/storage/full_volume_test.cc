// Goal: a volume that is full takes no batches, and all else goes on: reading, deleting, new
// epochs; what that frees is produced into again, without a new epoch. Method: one broker on a
// volume in memory that has a limit, as a disk has; the test moves the clock.

#include "storage/log_cleaner.h"
#include "storage/partition_log.h"
#include "storage/room.h"
#include "storage/testing_log.h"
#include "storage/testing_session.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace kaas::storage {
namespace {

using testing::Answer;
using testing::Broker;
using testing::make_batch;
using testing::read_values;
using testing::to_append;

constexpr std::uint64_t kLimit = 1'500 * 4096;

class FullVolumeTest : public ::testing::Test {
protected:
    FullVolumeTest() {
        config_.segment_bytes = 100'000;
        config_.file_delete_delay_ms = 10'000;
        volume_.limit_to(kLimit);
    }

    [[nodiscard]] LogPtr open(std::int32_t epoch) {
        auto opened = broker_->open(epoch, config_);
        EXPECT_TRUE(opened) << opened.error().context;
        return opened ? *opened : nullptr;
    }
    [[nodiscard]] Result<void> append(PartitionLog& log) {
        Answer answer;
        auto batch = make_batch({.value_bytes = 10'000, .timestamp_ms = clock_.wall_ms()});
        KAAS_TRY(log.append(to_append(batch, Acks::kAll, broker_->executor, answer.receiver())));
        broker_->commit_all();
        if (!answer.value) return fail(ErrorCode::kIo, "no answer");
        if (!*answer.value) return std::unexpected(answer.value->error());
        ++acknowledged_;
        return {};
    }
    /// Produces until that is refused.
    void fill(PartitionLog& log) {
        auto appended = append(log);
        for (int i = 0; appended && i < 1'000; ++i) {
            clock_.advance(std::chrono::milliseconds(50));
            appended = append(log);
        }
        ASSERT_FALSE(appended);
        EXPECT_EQ(appended.error().code, ErrorCode::kNoSpace);
        EXPECT_GE(free_bytes(), kLimit / Room::kReservePart);
    }
    [[nodiscard]] Result<base::Offset> delete_records(PartitionLog& log, std::int64_t before) {
        std::optional<Result<base::Offset>> answer;
        log.delete_records(base::Offset{before}, broker_->executor,
                           [&](Result<base::Offset> result) { answer = std::move(result); });
        broker_->commit_all();
        return answer ? *answer : fail(ErrorCode::kIo, "no answer");
    }
    void remove_dropped(PartitionLog& log) {
        clock_.advance(std::chrono::seconds(11));
        log.reclaim();
    }
    /// Somebody else fills the volume to its last block.
    void take_the_rest() {
        auto file = volume_.create("not ours");
        ASSERT_TRUE(file);
        const std::vector<std::byte> bytes(free_bytes());
        const base::ByteView piece(bytes);
        ASSERT_TRUE((*file)->write_at(0, {&piece, 1}));
        ASSERT_EQ(free_bytes(), 0U);
    }
    [[nodiscard]] std::uint64_t free_bytes() { return volume_.space()->usable_bytes; }
    [[nodiscard]] std::size_t readable(PartitionLog& log) {
        const auto values = read_values(log);
        EXPECT_TRUE(values) << values.error().context;
        return values ? values->size() : 0;
    }

    MemoryVolume volume_;
    base::ManualClock clock_;
    LogConfig config_;
    std::unique_ptr<Broker> broker_ = std::make_unique<Broker>(volume_, clock_);
    std::size_t acknowledged_ = 0;
};

TEST_F(FullVolumeTest, DeleteRecordsMakesRoomForTheNextBatches) {
    auto log = open(0);
    fill(*log);
    EXPECT_FALSE(log->failure()) << "a batch that was refused ends nothing";
    EXPECT_EQ(readable(*log), acknowledged_);
    const auto start = delete_records(*log, 50);
    ASSERT_TRUE(start) << start.error().context;
    remove_dropped(*log);
    EXPECT_FALSE(append(*log)) << "it asks for the look that shows the room";
    ASSERT_TRUE(append(*log)) << "under the same epoch";
    EXPECT_EQ(log->view().high_watermark.value(), static_cast<std::int64_t>(acknowledged_));
    EXPECT_EQ(readable(*log), acknowledged_ - 50);
}

TEST_F(FullVolumeTest, RetentionMakesRoomForTheNextBatches) {
    auto log = open(0);
    fill(*log);
    config_.retention_bytes = 300'000;
    log->set_config(config_);
    log->retain();
    broker_->commit_all();
    remove_dropped(*log);
    std::ignore = append(*log);
    EXPECT_TRUE(append(*log));
}

TEST_F(FullVolumeTest, NextLifeBeginsAnEpochAndDeletes) {
    fill(*open(0));
    volume_.crash();
    broker_ = std::make_unique<Broker>(volume_, clock_);
    auto log = open(1);
    EXPECT_EQ(readable(*log), acknowledged_);
    ASSERT_TRUE(delete_records(*log, 50));
    remove_dropped(*log);
    EXPECT_TRUE(append(*log));
}

TEST_F(FullVolumeTest, EpochThatFindsNoRoomForItsTailLeavesNothing) {
    auto log = open(0);
    for (int i = 0; i < 5; ++i) ASSERT_TRUE(append(*log));
    volume_.crash();
    broker_ = std::make_unique<Broker>(volume_, clock_);
    volume_.limit_to(kLimit - free_bytes() + 45'000);
    const auto before = free_bytes();
    for (int epoch = 1; epoch < 10; ++epoch) {
        const auto opened = broker_->open(epoch, config_);
        ASSERT_FALSE(opened);
        EXPECT_EQ(opened.error().code, ErrorCode::kNoSpace);
    }
    EXPECT_LE(before - free_bytes(), 9 * 4096U) << "more than a directory for each attempt";
    volume_.limit_to(kLimit);
    EXPECT_EQ(readable(*open(10)), acknowledged_);
}

TEST_F(FullVolumeTest, LogThatOthersHaveTakenTheLastBlockFromIsReadOn) {
    auto log = open(0);
    for (int i = 0; i < 30; ++i) ASSERT_TRUE(append(*log));
    take_the_rest();
    auto appended = append(*log);
    for (int i = 0; appended && i < 3; ++i) appended = append(*log);  // into the block it has
    ASSERT_FALSE(appended);
    ASSERT_TRUE(log->failure()) << "the volume has refused what the log had given an offset";
    ASSERT_TRUE(log->is_readable());
    EXPECT_EQ(readable(*log), acknowledged_);
    ASSERT_TRUE(volume_.unlink("not ours"));
    auto next = open(1);
    EXPECT_GE(readable(*next), acknowledged_);
    EXPECT_TRUE(append(*next));
}

TEST_F(FullVolumeTest, ParkedFetchOfAnEndedLogIsNotWokenForEver) {
    auto log = open(0);
    ASSERT_TRUE(append(*log));
    take_the_rest();
    for (int i = 0; !log->failure() && i < 3; ++i) std::ignore = append(*log);
    int woken = 0;
    const auto id =
        log->watch({.beyond = log->view().high_watermark, .home = &broker_->executor, .wake = [&] {
                        ++woken;
                    }});
    EXPECT_EQ(woken, 0);
    log->unwatch(id);
}

TEST_F(FullVolumeTest, LogWhoseSyncFoundNoSpaceIsNotReadOn) {
    auto log = open(0);
    ASSERT_TRUE(append(*log));
    volume_.fail_nth(Operation::kSync, 1, {.code = ErrorCode::kNoSpace});
    EXPECT_FALSE(append(*log));
    ASSERT_TRUE(log->failure());
    EXPECT_FALSE(log->is_readable()) << "nobody knows what is left of what readers saw";
}

TEST_F(FullVolumeTest, JournalLeavesWhatIsKept) {
    const auto make = [&](const std::shared_ptr<Room>& room) {
        const Owner owner{.broker = base::BrokerId{1}, .incarnation = {base::Uuid::random()}};
        auto journal = Journal::make({.volume = &volume_,
                                      .session = &broker_->session,
                                      .io_pool = &broker_->executor,
                                      .clock = &clock_,
                                      .room = room,
                                      .owner = owner,
                                      .file_bytes = kLimit - kLimit / Room::kReservePart});
        std::ignore = journal->reserve(1);  // asks for a file
        return journal->reserve(1);
    };
    auto room = std::make_shared<Room>(volume_, broker_->executor, clock_);
    room->look();
    EXPECT_FALSE(make(room));
    EXPECT_GE(free_bytes(), kLimit / 2);
    EXPECT_TRUE(make(nullptr)) << "it would have fitted";
}

TEST(RoomTest, WhatIsOnItsWayIsCountedUntilTheNextLook) {
    MemoryVolume volume;
    constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;
    volume.set_space({.total_bytes = 100 * kGiB, .usable_bytes = kGiB});
    base::ManualClock clock;
    base::InlineExecutor executor;
    const auto room = std::make_shared<Room>(volume, executor, clock);
    EXPECT_TRUE(room->take(2 * kGiB)) << "nobody has looked yet";
    room->look();
    const auto left = kGiB - Room::kReserveBytes;
    EXPECT_FALSE(room->take(left)) << "what was taken before is on its way";
    clock.advance(std::chrono::seconds(1));
    room->look();
    ASSERT_TRUE(room->take(left));
    EXPECT_FALSE(room->take(1));
    EXPECT_FALSE(room->is_full()) << "the volume has not said so";
    volume.set_space({.total_bytes = 100 * kGiB, .usable_bytes = Room::kReserveBytes});
    clock.advance(std::chrono::seconds(1));
    EXPECT_FALSE(room->take(1)) << "but asks for a look";
    EXPECT_TRUE(room->is_full());
    volume.set_space({.total_bytes = 100 * kGiB, .usable_bytes = kGiB});
    EXPECT_FALSE(room->take(1)) << "one look a second";
    clock.advance(std::chrono::seconds(1));
    EXPECT_FALSE(room->take(1));
    EXPECT_TRUE(room->take(1));
    EXPECT_FALSE(room->is_full());
}

TEST(RoomTest, SmallVolumeKeepsAFiftieth) {
    EXPECT_EQ(Room::reserve_of({.total_bytes = 1'000'000'000}), 20'000'000U);
    EXPECT_EQ(Room::reserve_of({.total_bytes = std::uint64_t{1} << 40}), Room::kReserveBytes);
}

}  // namespace
}  // namespace kaas::storage
