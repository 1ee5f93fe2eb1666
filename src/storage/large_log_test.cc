// Goal: to read near the end of a log costs the same however long the log is. Method: a log of
// 10 GiB in sparse files on a real volume; the kernel counts the bytes that are read.
#include "base/clock.h"
#include "base/ids.h"
#include "storage/epoch_reader.h"
#include "storage/partition_log.h"
#include "storage/posix_volume.h"
#include "storage/testing_large_log.h"
#include "storage/testing_log.h"
#include "storage/testing_volume.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <string>

namespace kaas::storage {
namespace {

using testing::Broker;
using testing::LargeLog;

/// Bytes that this process has read from files, pipes and sockets so far.
[[nodiscard]] std::uint64_t bytes_read() {
    std::ifstream counters("/proc/self/io");
    std::string name;
    std::uint64_t value = 0;
    while (counters >> name >> value) {
        if (name == "rchar:") return value;
    }
    ADD_FAILURE() << "the kernel does not count";
    return 0;
}

TEST(LargeLogTest, AFetchNearTheEndReadsKilobytes) {
    const testing::TemporaryDirectory root;
    const auto volume = PosixVolume::open(root.path());
    ASSERT_TRUE(volume) << volume.error().context;
    const std::string directory = "topic.AAAAAAAAAAAAAAAAAAAAAA/0";
    const auto large = LargeLog::make(**volume, directory, 10);
    ASSERT_TRUE(large) << large.error().context;

    base::ManualClock clock;
    Broker broker(**volume, clock);
    const auto opening = bytes_read();
    const auto log = broker.open(1, {}, 0, true);
    ASSERT_TRUE(log) << log.error().context;
    EXPECT_LT(bytes_read() - opening, 64 * 1024U);
    ASSERT_EQ((*log)->view().high_watermark, large->end());

    for (std::int64_t behind = 1; behind <= LargeLog::kRealBatches; ++behind) {
        const auto before = bytes_read();
        const auto from = large->end() - behind;
        const auto read = (*log)->read({.from = from, .max_bytes = 1 << 20}, Patience::kMayBlock);
        ASSERT_TRUE(read) << read.error().context;
        EXPECT_EQ(read->records.length, static_cast<std::uint64_t>(behind * LargeLog::kBatchBytes));
        EXPECT_LT(bytes_read() - before, read->records.length + 8 * 1024U) << "what it gives, once";
    }
    (*log)->abandon(ErrorCode::kClosed);
}

}  // namespace
}  // namespace kaas::storage
