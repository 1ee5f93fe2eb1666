// Goal: a partition that is whole is called so, and whatever changes in it afterwards is found, by
// file and position. Method: a log is written and released by its owner on a MemoryVolume; bytes of
// its files are then flipped one after the other.

#include "storage/check.h"

#include "storage/partition_log_fixture.h"
#include "storage/testing_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace kaas::storage {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class CheckTest : public testing::PartitionLogTest {
protected:
    static constexpr auto kPartition = "topic.AAAAAAAAAAAAAAAAAAAAAA/0";

    /// Three segments of several batches, of two epochs.
    void SetUp() override {
        LogConfig config;
        config.segment_bytes = 500;
        config.index_interval_bytes = 0;
        for (const auto epoch : {0, 1}) {
            auto log = open(epoch, config);
            for (std::int64_t i = 0; i < 5; ++i) {
                append_durably(*log, {.records = 2,
                                      .value_bytes = 30,
                                      .timestamp_ms = 1'700'000'000'000 + 10 * epoch + i});
            }
            ASSERT_TRUE(log->release(std::chrono::seconds(1)));
            restart();
        }
    }

    std::vector<Damage> check() {
        std::vector<Damage> damages;
        const auto summary =
            check_partitions(volume_, "", [&](const Damage& damage) { damages.push_back(damage); });
        EXPECT_TRUE(summary) << summary.error().context;
        if (summary) {
            EXPECT_EQ(summary->damages, damages.size());
            summary_ = *summary;
        }
        return damages;
    }

    std::string path_of(const std::string& name) { return std::string(kPartition) + "/" + name; }

    /// Flips bits of one byte, runs `look`, and flips them back.
    template <class Look>
    void with_flipped(const std::string& path, std::uint64_t at, Look look) {
        auto file = volume_.open(path, OpenMode::kReadWrite);
        ASSERT_TRUE(file);
        std::byte byte{};
        const base::ByteView piece(&byte, 1);
        const auto flip = [&] {
            ASSERT_TRUE((*file)->read_at(at, {&byte, 1}));
            byte ^= std::byte{0x55};
            ASSERT_TRUE((*file)->write_at(at, {&piece, 1}));
        };
        flip();
        look();
        flip();
    }

    std::uint64_t size_of(const std::string& path) {
        auto file = volume_.open(path, OpenMode::kRead);
        return file ? *(*file)->size() : 0;
    }

    CheckSummary summary_;
};

TEST_F(CheckTest, AWholePartitionIsWell) {
    EXPECT_THAT(check(), IsEmpty());
    EXPECT_EQ(summary_.partitions, 1U);
    EXPECT_GE(summary_.segments, 4U);
    EXPECT_EQ(summary_.batches, 10U);
}

TEST_F(CheckTest, EveryFlippedByteIsFoundInItsFile) {
    for (const std::string name :
         {"00000000/00000000000000000000", "00000001/00000000000000000010"}) {
        for (const std::string suffix : {".log", ".index", ".timeindex"}) {
            const auto path = path_of(name + suffix);
            const auto size = size_of(path);
            ASSERT_GT(size, 0U) << path;
            for (std::uint64_t at = 0; at < size; ++at) {
                SCOPED_TRACE(path + " at " + std::to_string(at));
                with_flipped(path, at, [&] {
                    const auto damages = check();
                    ASSERT_EQ(damages.size(), 1U) << damages[1].file << ": " << damages[1].why;
                    EXPECT_EQ(damages.front().file, path);
                    if (damages.front().position) {
                        EXPECT_LE(*damages.front().position, at);
                    }
                });
                if (HasFatalFailure()) return;
            }
        }
    }
    EXPECT_THAT(check(), IsEmpty());
}

TEST_F(CheckTest, AMissingAndAShortSegmentAreFound) {
    const auto path = path_of("00000000/00000000000000000000.log");
    ASSERT_TRUE(volume_.rename(path, path + "x"));
    auto damages = check();
    ASSERT_EQ(damages.size(), 1U);
    EXPECT_EQ(damages[0].file, path);
    ASSERT_TRUE(volume_.create(path));
    damages = check();
    ASSERT_EQ(damages.size(), 1U);
    EXPECT_EQ(damages[0].file, path);
    EXPECT_EQ(damages[0].position, 0U);
}

TEST_F(CheckTest, ADamagedManifestIsFound) {
    const auto path = path_of("00000001/manifest-1.jsonl");
    with_flipped(path, 1, [&] {
        const auto damages = check();
        ASSERT_EQ(damages.size(), 1U);
        EXPECT_EQ(damages[0].file, path_of("00000001"));
    });
}

TEST_F(CheckTest, DamageThatGoesOnIsToldOnce) {
    const auto path = path_of("00000000/00000000000000000000.log");
    const auto size = size_of(path);
    auto file = volume_.open(path, OpenMode::kReadWrite);
    const std::string zeros(size / 2, '\0');
    const auto piece = base::as_bytes(zeros);
    ASSERT_TRUE((*file)->write_at(size / 4, {&piece, 1}));
    const auto damages = check();
    ASSERT_EQ(damages.size(), 1U);
    EXPECT_EQ(damages[0].file, path);
}

TEST_F(CheckTest, TwoDamagesOfOneFileAreTwo) {
    const auto path = path_of("00000000/00000000000000000000.log");
    with_flipped(path, 30, [&] {
        with_flipped(path, size_of(path) - 1, [&] { EXPECT_EQ(check().size(), 2U); });
    });
}

TEST_F(CheckTest, RecordsOfAnEpochThatLostItsManifestAreFound) {
    ASSERT_TRUE(volume_.unlink(path_of("00000001/manifest-1.jsonl")));
    auto damages = check();
    ASSERT_EQ(damages.size(), 1U);
    EXPECT_EQ(damages[0].file, path_of("00000001/00000000000000000016.log"));
    EXPECT_THAT(damages[0].why, HasSubstr("up to offset 20, and the log ends at 10"));
    ASSERT_TRUE(volume_.unlink(path_of("00000000/manifest-1.jsonl")));
    damages = check();
    EXPECT_EQ(damages.size(), 2U);
    EXPECT_EQ(summary_.partitions, 1U);
}

TEST_F(CheckTest, WhatIsBehindTheRecordedEndDoesNotCount) {
    auto file = volume_.open(path_of("00000001/00000000000000000010.log"), OpenMode::kReadWrite);
    const auto garbage = base::as_bytes("garbage");
    ASSERT_TRUE((*file)->write_at(*(*file)->size(), {&garbage, 1}));
    EXPECT_THAT(check(), IsEmpty());
}

TEST_F(CheckTest, WhatIsNoPartitionIsNotLookedAt) {
    ASSERT_TRUE(volume_.make_directory("__cluster"));
    ASSERT_TRUE(volume_.make_directory("__cluster/control"));
    ASSERT_TRUE(volume_.make_directory("__cluster/control/00000001"));
    ASSERT_TRUE(volume_.create("__cluster/control/00000001/manifest-1.jsonl"));
    EXPECT_THAT(check(), IsEmpty());
    EXPECT_EQ(summary_.partitions, 1U);
}

}  // namespace
}  // namespace kaas::storage
