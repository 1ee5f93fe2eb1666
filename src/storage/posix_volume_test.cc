// Goal: PosixVolume keeps the contract of volume.h on a real directory.
// Method: each test works in a fresh directory below the system's temporary one; marks are judged
// from a second volume object, as another process would.
#include "storage/posix_volume.h"

#include "base/bytes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdlib.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace kaas::storage {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class PosixVolumeTest : public testing::Test {
protected:
    PosixVolumeTest() {
        std::string name = (std::filesystem::temp_directory_path() / "kaas_volume_XXXXXX").string();
        EXPECT_NE(::mkdtemp(name.data()), nullptr);
        root_ = name;
        volume_ = open_again();
    }
    ~PosixVolumeTest() override {
        std::error_code ignored;
        std::filesystem::remove_all(root_, ignored);
    }

    std::unique_ptr<PosixVolume> open_again(PosixVolumeOptions options = {}) {
        auto volume = PosixVolume::open(root_, options);
        EXPECT_TRUE(volume) << volume.error().context;
        return std::move(*volume);
    }
    std::unique_ptr<File> make_file(const std::string& path, std::string_view text) {
        auto file = volume_->create(path);
        EXPECT_TRUE(file) << file.error().context;
        base::ByteView piece = base::as_bytes(text);
        EXPECT_TRUE((*file)->write_at(0, {&piece, 1}));
        return std::move(*file);
    }
    std::string read(const std::string& path) {
        auto text = read_whole(*volume_, path, 1 << 20);
        return text ? *text : "error: " + text.error().context;
    }

    std::string root_;
    std::unique_ptr<PosixVolume> volume_;
};

TEST_F(PosixVolumeTest, PiecesAreWrittenOneAfterTheOther) {
    auto file = volume_->create("a");
    ASSERT_TRUE(file);
    std::array<base::ByteView, 4> pieces = {base::as_bytes("ab"), base::as_bytes(""),
                                            base::as_bytes("cde"), base::as_bytes("f")};
    ASSERT_TRUE((*file)->write_at(3, pieces));
    EXPECT_EQ(read("a"), std::string("\0\0\0abcdef", 9));
    EXPECT_EQ(*(*file)->size(), 9U);
}

TEST_F(PosixVolumeTest, MorePiecesThanOneCallTakes) {
    std::vector<std::string> texts;
    std::vector<base::ByteView> pieces;
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

TEST_F(PosixVolumeTest, CreationIsExclusive) {
    make_file("a", "x");
    EXPECT_EQ(volume_->create("a").error().code, ErrorCode::kExists);
    ASSERT_TRUE(volume_->make_directory("d"));
    EXPECT_EQ(volume_->make_directory("d").error().code, ErrorCode::kExists);
    EXPECT_EQ(read("a"), "x");
}

TEST_F(PosixVolumeTest, OnlyOneLevelIsMade) {
    EXPECT_EQ(volume_->make_directory("gone/new").error().code, ErrorCode::kNotFound);
    EXPECT_EQ(volume_->create("gone/new").error().code, ErrorCode::kNotFound);
}

TEST_F(PosixVolumeTest, ErrorsNameThePath) {
    auto opened = volume_->open("nobody/here", OpenMode::kRead);
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, ErrorCode::kNotFound);
    EXPECT_THAT(opened.error().context, HasSubstr("nobody/here"));
    EXPECT_THAT(opened.error().context, HasSubstr("No such file"));
}

TEST_F(PosixVolumeTest, SymbolicLinkIsNotFollowed) {
    make_file("target", "x");
    std::filesystem::create_symlink("target", root_ + "/link");
    EXPECT_EQ(volume_->open("link", OpenMode::kReadWrite).error().code, ErrorCode::kIo);
}

TEST_F(PosixVolumeTest, ShortReadMeansTheEnd) {
    auto file = make_file("a", "hello");
    std::array<std::byte, 16> into;
    EXPECT_EQ(*file->read_at(2, into), 3U);
    EXPECT_EQ(*file->read_at(5, into), 0U);
    EXPECT_EQ(*file->read_at(100, into), 0U);
}

TEST_F(PosixVolumeTest, WhatWasJustWrittenIsCached) {
    std::string text(300'000, 'k');
    auto file = make_file("a", text);
    EXPECT_TRUE(file->cached(0, text.size()));
    EXPECT_TRUE(file->cached(8191, 2));
    EXPECT_TRUE(file->cached(0, 0));
    EXPECT_FALSE(file->cached(0, text.size() + 100'000)) << "nothing is cached behind the end";
    std::array<std::byte, 10> into;
    EXPECT_EQ(*file->try_read_at(0, into), 10U);
}

TEST_F(PosixVolumeTest, WriteToAReadOnlyOpenFails) {
    make_file("a", "x");
    auto file = volume_->open("a", OpenMode::kRead);
    ASSERT_TRUE(file);
    base::ByteView piece = base::as_bytes("y");
    EXPECT_EQ((*file)->write_at(0, {&piece, 1}).error().code, ErrorCode::kIo);
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

TEST_F(PosixVolumeTest, NamesComeAndGo) {
    ASSERT_TRUE(volume_->make_directory("d"));
    make_file("d/b", "1");
    make_file("d/a", "2");
    ASSERT_TRUE(volume_->rename("d/b", "d/c"));
    ASSERT_TRUE(volume_->sync_directory("d"));
    ASSERT_TRUE(volume_->sync_directory(""));
    EXPECT_THAT(*volume_->list("d"), ElementsAre("a", "c"));
    EXPECT_FALSE(volume_->remove_directory("d"));
    ASSERT_TRUE(volume_->unlink("d/a"));
    ASSERT_TRUE(volume_->unlink("d/c"));
    EXPECT_THAT(*volume_->list("d"), IsEmpty());
    ASSERT_TRUE(volume_->remove_directory("d"));
    EXPECT_EQ(volume_->list("d").error().code, ErrorCode::kNotFound);
}

TEST_F(PosixVolumeTest, MarkIsSeenThroughAHeldDirectory) {
    ASSERT_TRUE(volume_->make_directory("s"));
    ASSERT_TRUE(volume_->make_directory("s/1.abc"));
    auto held = volume_->hold("s/1.abc");
    ASSERT_TRUE(held);
    EXPECT_EQ(*(*held)->look(), Liveness::kAlive);

    ASSERT_TRUE(open_again()->mark("s/1.abc", MarkKind::kRemove));
    EXPECT_EQ(*(*held)->look(), Liveness::kMarked);
    EXPECT_THAT(*volume_->list("s"), IsEmpty());
    ASSERT_TRUE(open_again()->mark("s/1.abc", MarkKind::kRemove)) << "a second marker is as right";
    EXPECT_THAT(*volume_->list("s"), IsEmpty());
}

TEST_F(PosixVolumeTest, ModeZeroAloneIsAMark) {
    ASSERT_TRUE(volume_->make_directory("s"));
    auto held = volume_->hold("s");
    ASSERT_TRUE(held);
    std::filesystem::permissions(root_ + "/s", std::filesystem::perms::none);
    EXPECT_EQ(*(*held)->look(), Liveness::kMarked);
    ASSERT_TRUE(volume_->mark("s", MarkKind::kRemove)) << "a half-made mark is completed";
    EXPECT_EQ(volume_->hold("s").error().code, ErrorCode::kNotFound);
}

TEST_F(PosixVolumeTest, KeptMarkLeavesTheDirectory) {
    ASSERT_TRUE(volume_->make_directory("e"));
    auto held = volume_->hold("e");
    ASSERT_TRUE(held);
    ASSERT_TRUE(volume_->mark("e", MarkKind::kKeep));
    ASSERT_TRUE(volume_->mark("e", MarkKind::kKeep));
    EXPECT_EQ(*(*held)->look(), Liveness::kMarked);
    EXPECT_EQ(volume_->make_directory("e").error().code, ErrorCode::kExists);
}

TEST_F(PosixVolumeTest, MarkOfAnAbsentNameClosesIt) {
    ASSERT_TRUE(volume_->mark("never", MarkKind::kKeep));
    EXPECT_EQ(volume_->make_directory("never").error().code, ErrorCode::kExists);
    auto held = volume_->hold("never");
    ASSERT_TRUE(held);
    EXPECT_EQ(*(*held)->look(), Liveness::kMarked);
    ASSERT_TRUE(volume_->mark("never2", MarkKind::kRemove));
    EXPECT_THAT(*volume_->list(""), ElementsAre("never"));
    EXPECT_EQ(volume_->mark("no/parent", MarkKind::kRemove).error().code, ErrorCode::kNotFound);
}

TEST_F(PosixVolumeTest, BeatIsReadByAnother) {
    ASSERT_TRUE(volume_->make_directory("e"));
    auto holder = volume_->hold("e");
    auto watcher = open_again()->hold("e");
    ASSERT_TRUE(holder && watcher);
    ASSERT_TRUE((*holder)->beat(41));
    EXPECT_EQ(*(*watcher)->last_beat(), 41);
    ASSERT_TRUE((*holder)->beat(42));
    EXPECT_EQ(*(*watcher)->last_beat(), 42);
    EXPECT_EQ(*(*watcher)->look(), Liveness::kAlive);
}

TEST_F(PosixVolumeTest, LockNamesItsHolder) {
    auto first = volume_->lock("kaas.lock", "4711");
    ASSERT_TRUE(first);
    auto second = open_again()->lock("kaas.lock", "1");
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, ErrorCode::kLocked);
    EXPECT_EQ(second.error().context, "4711");
    first->reset();
    EXPECT_TRUE(open_again()->lock("kaas.lock", "12"));
    EXPECT_EQ(read("kaas.lock"), "12");
}

TEST_F(PosixVolumeTest, MissingRootIsAnErrorUnlessAskedFor) {
    std::string deep = root_ + "/x/y/z";
    EXPECT_EQ(PosixVolume::open(deep).error().code, ErrorCode::kNotFound);
    ASSERT_TRUE(PosixVolume::open(deep, {.create_root = true}));
    ASSERT_TRUE(PosixVolume::open(deep, {.create_root = true})) << "and it may be there already";
    ASSERT_TRUE(PosixVolume::open(deep + "/", {.create_root = true}));
    EXPECT_FALSE(PosixVolume::open(""));
    make_file("file", "");
    EXPECT_FALSE(PosixVolume::open(root_ + "/file"));
}

TEST_F(PosixVolumeTest, RootMayMoveWhileInUse) {
    make_file("a", "x");
    std::filesystem::rename(root_, root_ + ".moved");
    root_ += ".moved";
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

TEST_F(PosixVolumeTest, WholeFileHasALimit) {
    make_file("a", "12345");
    EXPECT_EQ(*read_whole(*volume_, "a", 5), "12345");
    EXPECT_EQ(read_whole(*volume_, "a", 4).error().code, ErrorCode::kCorrupt);
    make_file("empty", "");
    EXPECT_EQ(*read_whole(*volume_, "empty", 0), "");
}

}  // namespace
}  // namespace kaas::storage
