// Goal: PosixVolume keeps the contract of volume.h on a real directory.
// Method: each test works in a fresh directory below the system's temporary one; marks are judged
// from a second volume object, as another process would.
#include "storage/posix_volume.h"

#include "base/bytes.h"
#include "base/metrics.h"
#include "storage/error.h"
#include "storage/testing_volume.h"
#include "storage/volume.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kaas::storage {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class PosixVolumeTest : public ::testing::Test {
protected:
    std::unique_ptr<PosixVolume> open_again(PosixVolumeOptions options = {}) {
        auto volume = PosixVolume::open(root_.path(), options);
        EXPECT_TRUE(volume) << volume.error().context;
        return std::move(*volume);
    }
    std::unique_ptr<File> make_file(const std::string& path, std::string_view text) {
        return testing::make_file(*volume_, path, text);
    }
    std::string read(const std::string& path) { return testing::read_text(*volume_, path); }

    testing::TemporaryDirectory root_;
    std::unique_ptr<PosixVolume> volume_ = open_again();
};

TEST_F(PosixVolumeTest, MorePiecesThanOneCallTakes) {
    std::vector<std::string> texts;
    std::vector<base::ByteView> pieces;
    pieces.reserve(3000);
    texts.reserve(3000);
    std::string all;
    for (int i = 0; i < 3000; ++i) texts.push_back(std::to_string(i) + ";");
    for (const auto& text : texts) {
        pieces.push_back(base::as_bytes(text));
        all += text;
    }
    auto file = volume_->create("many");
    ASSERT_TRUE(file);
    ASSERT_TRUE((*file)->write_at(0, pieces));
    EXPECT_EQ(read("many"), all);
}

TEST_F(PosixVolumeTest, APrivateFileIsForNobodyElse) {
    ASSERT_TRUE(volume_->create_private("secret"));
    const auto status = std::filesystem::status(std::filesystem::path(root_.path()) / "secret");
    EXPECT_EQ(status.permissions(),
              std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
    EXPECT_EQ(volume_->create_private("secret").error().code, ErrorCode::kExists);
}

TEST_F(PosixVolumeTest, SymbolicLinkIsNotFollowed) {
    make_file("target", "x");
    std::filesystem::create_symlink("target", root_.path() + "/link");
    EXPECT_EQ(volume_->open("link", OpenMode::kReadWrite).error().code, ErrorCode::kIo);
}

TEST_F(PosixVolumeTest, FullDeviceIsNoSpace) {
    // /dev/full refuses every write with ENOSPC, as a full disk does.
    auto dev = PosixVolume::open("/dev");
    ASSERT_TRUE(dev);
    auto full = (*dev)->open("full", OpenMode::kReadWrite);
    if (!full) GTEST_SKIP() << full.error().context;
    base::ByteView piece = base::as_bytes("y");
    EXPECT_EQ((*full)->write_at(0, {&piece, 1}).error().code, ErrorCode::kNoSpace);
}

TEST_F(PosixVolumeTest, ModeZeroAloneIsAMark) {
    ASSERT_TRUE(volume_->make_directory("s"));
    auto held = volume_->hold("s");
    ASSERT_TRUE(held);
    std::filesystem::permissions(root_.path() + "/s", std::filesystem::perms::none);
    EXPECT_EQ(*(*held)->look(), Liveness::kMarked);
    ASSERT_TRUE(volume_->mark("s", MarkKind::kRemove)) << "a half-made mark is completed";
    EXPECT_EQ(volume_->hold("s").error().code, ErrorCode::kNotFound);
}

TEST_F(PosixVolumeTest, MissingRootIsAnErrorUnlessAskedFor) {
    std::string deep = root_.path() + "/x/y/z";
    EXPECT_EQ(PosixVolume::open(deep).error().code, ErrorCode::kNotFound);
    ASSERT_TRUE(PosixVolume::open(deep, {.create_root = true}));
    ASSERT_TRUE(PosixVolume::open(deep, {.create_root = true})) << "and it may be there already";
    ASSERT_TRUE(PosixVolume::open(deep + "/", {.create_root = true}));
    EXPECT_FALSE(PosixVolume::open(""));
    make_file("file", "");
    EXPECT_FALSE(PosixVolume::open(root_.path() + "/file"));
}

TEST_F(PosixVolumeTest, RootMayMoveWhileInUse) {
    make_file("a", "x");
    root_.move_to(root_.path() + ".moved");
    EXPECT_EQ(read("a"), "x");
}

TEST_F(PosixVolumeTest, LatenciesAreCountedAndEphemeralSyncsAreNot) {
    base::metrics::Registry registry;
    auto count = [&](std::string_view name) {
        std::uint64_t all = 0;
        for (auto n : registry.histogram(name, "").counts()) all += n;
        return all;
    };
    auto exercise = [](Volume& volume, const std::string& name) {
        auto file = volume.create(name);
        base::ByteView piece = base::as_bytes("x");
        ASSERT_TRUE((*file)->write_at(0, {&piece, 1}));
        ASSERT_TRUE((*file)->sync());
        ASSERT_TRUE(volume.sync_directory(""));
        std::byte into;
        ASSERT_TRUE((*file)->read_at(0, {&into, 1}));
    };
    auto honest = open_again({.metrics = &registry});
    exercise(*honest, "a");
    EXPECT_EQ(count("kaas_storage_write_latency_seconds"), 1U);
    EXPECT_EQ(count("kaas_storage_read_latency_seconds"), 1U);
    EXPECT_EQ(count("kaas_storage_fsync_latency_seconds"), 2U);
    auto ephemeral = open_again({.honest_sync = false, .metrics = &registry});
    exercise(*ephemeral, "b");
    EXPECT_EQ(count("kaas_storage_write_latency_seconds"), 2U);
    EXPECT_EQ(count("kaas_storage_fsync_latency_seconds"), 2U);
}

TEST_F(PosixVolumeTest, KnowsItsSpaceAndKind) {
    auto space = volume_->space();
    ASSERT_TRUE(space);
    EXPECT_GT(space->total_bytes, 0U);
    EXPECT_LE(space->usable_bytes, space->total_bytes);
    EXPECT_TRUE(volume_->is_local());
    EXPECT_FALSE((*PosixVolume::open("/proc"))->is_local());
}

}  // namespace
}  // namespace kaas::storage
