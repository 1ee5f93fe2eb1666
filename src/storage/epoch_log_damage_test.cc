// Goal: a bit that flips anywhere in the files of an epoch log is told, by file and place, or means
// nothing. Method: what an owner wrote (a log that rolled, the manifest of a partition) is read
// with each byte changed in turn, in several ways; the line that it stands in must be named, or all
// that the log says be the same.
//
// Bytes become no NUL here: that is what a crash leaves where bytes were lost (decisions/0011), and
// `epoch_log_test.cc` has those.

#include "storage/epoch_log.h"
#include "storage/epoch_reader.h"
#include "storage/manifest.h"
#include "storage/partition_log_fixture.h"
#include "storage/testing_log.h"
#include "storage/testing_session.h"
#include "storage/testing_volume.h"

#include <boost/json/object.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace kaas::storage {
namespace {

namespace json = boost::json;

using ::testing::HasSubstr;

/// A changed name of a checksum's own member makes it a member that nobody knows.
[[nodiscard]] bool says_all_of(const json::object& read, const json::object& written) {
    return std::ranges::all_of(written, [&](const auto& member) {
        const auto* value = read.if_contains(member.key());
        return value != nullptr && *value == member.value();
    });
}

[[nodiscard]] bool says_the_same(const EpochState& read, const EpochState& written) {
    return read.file == written.file && read.released == written.released &&
           read.vouched_lines == written.vouched_lines &&
           read.picture_vouched == written.picture_vouched &&
           says_all_of(read.picture, written.picture) &&
           std::ranges::equal(read.lines, written.lines, [](const auto& a, const auto& b) {
               return a.kind == b.kind && says_all_of(a.object, b.object);
           });
}

class DamagedLines : public testing::PartitionLogTest {
protected:
    void rewrite(const std::string& name, std::string_view text) {
        auto file = volume_.open(name, OpenMode::kReadWrite);
        ASSERT_TRUE(file);
        const auto piece = base::as_bytes(text);
        ASSERT_TRUE((*file)->write_at(0, {&piece, 1}));
    }

    /// Changes each byte of a file of the epoch in turn.
    void flip_all(const EpochLogPath& path, std::int32_t epoch, std::uint32_t number) {
        const auto name = path.file(epoch, number);
        const auto text = testing::read_text(volume_, name);
        const auto written = read_epoch(volume_, path, epoch);
        ASSERT_TRUE(written && *written);
        for (std::size_t at = 0; at < text.size(); ++at) {
            for (const char mask : {'\x01', '\x02', '\x10', '\x20', '\x7f', '\x80'}) {
                auto damaged = text;
                damaged[at] = static_cast<char>(damaged[at] ^ mask);
                if (damaged[at] == '\0') continue;
                rewrite(name, damaged);
                const auto read = read_epoch(volume_, path, epoch);
                if (read && *read && says_the_same(**read, **written)) {
                    ++harmless_;
                    continue;
                }
                ASSERT_FALSE(read) << name << " at " << at << ": " << damaged;
                ++told_;
                const auto line = text.rfind('\n', at == 0 ? 0 : at - 1);
                const auto begin = line == std::string::npos || at == 0 ? 0 : line + 1;
                ASSERT_EQ(read.error().code, ErrorCode::kCorrupt);
                ASSERT_THAT(read.error().context,
                            HasSubstr(name + " at byte " + std::to_string(begin) + ":"));
            }
        }
        rewrite(name, text);
    }

    int told_ = 0;
    int harmless_ = 0;  ///< in the name of the checksum's member, or a space for the last newline
};

TEST_F(DamagedLines, EveryFlipInALogThatRolledIsToldByFileAndLine) {
    const EpochLogPath path{.directory = "p", .kind = "control"};
    ASSERT_TRUE(volume_.make_directory("p"));
    auto log = EpochLog::create(volume_, path, 1, json::object{{"numbers", json::array{1, 2, 300}}},
                                {.roll_floor_bytes = 0});
    ASSERT_TRUE(log);
    for (const auto* name : {"first", "second"}) {
        ASSERT_TRUE(log->append(json::object{{"create", name}, {"partitions", 12}}));
        ASSERT_TRUE(log->sync());
        ASSERT_TRUE(log->append(json::object{{"then", 4711}}));
        ASSERT_TRUE(log->append_synced(json::object{{"up_to", 4711}}));
        if (log->wants_roll()) ASSERT_TRUE(log->roll(json::object{{"numbers", name}}));
    }
    ASSERT_TRUE(log->append(json::object{{"nobody", "vouches"}}));
    for (const std::uint32_t number : {1U, 3U}) flip_all(path, 1, number);
    EXPECT_GT(told_, 20 * harmless_);
}

TEST_F(DamagedLines, EveryFlipInAManifestIsToldByFileAndLine) {
    LogConfig config;
    config.segment_bytes = 500;
    auto log = open(0, config);
    for (int i = 0; i < 5; ++i) {
        append_durably(*log, {.records = 2, .value_bytes = 30, .timestamp_ms = 1'700'000'000'000});
    }
    const EpochLogPath path{.directory = "topic.AAAAAAAAAAAAAAAAAAAAAA/0", .kind = "manifest"};
    flip_all(path, 0, 1);
    ASSERT_TRUE(log->release(std::chrono::seconds(1)));
    flip_all(path, 0, 1);
    EXPECT_GT(told_, 20 * harmless_);
}

TEST_F(DamagedLines, ALineThatAPersonMendedCountsWithoutItsChecksum) {
    const EpochLogPath path{.directory = "p", .kind = "control"};
    ASSERT_TRUE(volume_.make_directory("p"));
    auto log = EpochLog::create(volume_, path, 1, json::object{{"number", 1}});
    ASSERT_TRUE(log);
    auto text = testing::read_text(volume_, path.file(1, 1));
    text.replace(text.find("\"number\":1"), 10, "\"number\":2");
    rewrite(path.file(1, 1), text);
    const auto refused = read_epoch(volume_, path, 1);
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().context, HasSubstr("delete the \"crc\""));

    const auto checksum = text.find(",\"crc\"");
    text.replace(checksum, text.size() - checksum, "}\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n");
    rewrite(path.file(1, 1), text);
    const auto mended = read_epoch(volume_, path, 1);
    ASSERT_TRUE(mended && *mended) << mended.error().context;
    EXPECT_EQ((*mended)->picture, (json::object{{"number", 2}}));
}

}  // namespace
}  // namespace kaas::storage
