// What a log says of bytes that changed under it after they were written.
#include "base/bytes.h"
#include "base/clock.h"
#include "base/executor.h"
#include "storage/error.h"
#include "storage/memory_volume.h"
#include "storage/partition_log.h"
#include "storage/testing_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
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

}  // namespace
}  // namespace kaas::storage
