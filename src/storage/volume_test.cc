// Goal: both volumes keep the contract of volume.h, so that what is tested in memory holds on disk.
// Method: the same tests run on a PosixVolume in a temporary directory and on a MemoryVolume.
#include "storage/volume.h"

#include "base/bytes.h"
#include "storage/error.h"
#include "storage/memory_volume.h"
#include "storage/posix_volume.h"
#include "storage/testing_volume.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace kaas::storage {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class VolumeTest : public ::testing::TestWithParam<std::string> {
protected:
    VolumeTest() {
        if (GetParam() == "Memory") {
            volume_ = std::make_unique<MemoryVolume>();
            return;
        }
        root_.emplace();
        auto opened = PosixVolume::open(root_->path());
        EXPECT_TRUE(opened) << opened.error().context;
        volume_ = std::move(*opened);
    }

    std::unique_ptr<File> make_file(const std::string& path, std::string_view text) {
        return testing::make_file(*volume_, path, text);
    }
    std::string read(const std::string& path) { return testing::read_text(*volume_, path); }

    std::optional<testing::TemporaryDirectory> root_;
    std::unique_ptr<Volume> volume_;
};

INSTANTIATE_TEST_SUITE_P(, VolumeTest, ::testing::Values("Memory", "Posix"),
                         [](const auto& name) { return name.param; });

TEST_P(VolumeTest, PiecesAreWrittenOneAfterTheOther) {
    auto file = volume_->create("a");
    ASSERT_TRUE(file);
    std::array<base::ByteView, 4> pieces = {base::as_bytes("ab"), base::as_bytes(""),
                                            base::as_bytes("cde"), base::as_bytes("f")};
    ASSERT_TRUE((*file)->write_at(3, pieces));
    EXPECT_EQ(read("a"), std::string("\0\0\0abcdef", 9));
    EXPECT_EQ(*(*file)->size(), 9U);
}

TEST_P(VolumeTest, CreationIsExclusive) {
    make_file("a", "x");
    EXPECT_EQ(volume_->create("a").error().code, ErrorCode::kExists);
    ASSERT_TRUE(volume_->make_directory("d"));
    EXPECT_EQ(volume_->make_directory("d").error().code, ErrorCode::kExists);
    EXPECT_EQ(read("a"), "x");
}

TEST_P(VolumeTest, OnlyOneLevelIsMade) {
    EXPECT_EQ(volume_->make_directory("gone/new").error().code, ErrorCode::kNotFound);
    EXPECT_EQ(volume_->create("gone/new").error().code, ErrorCode::kNotFound);
}

TEST_P(VolumeTest, ErrorsNameThePath) {
    auto opened = volume_->open("nobody/here", OpenMode::kRead);
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, ErrorCode::kNotFound);
    EXPECT_THAT(opened.error().context, HasSubstr("nobody/here"));
    EXPECT_THAT(opened.error().context, HasSubstr("No such file"));
}

TEST_P(VolumeTest, ShortReadMeansTheEnd) {
    auto file = make_file("a", "hello");
    std::array<std::byte, 16> into;
    EXPECT_EQ(*file->read_at(2, into), 3U);
    EXPECT_EQ(*file->read_at(5, into), 0U);
    EXPECT_EQ(*file->read_at(100, into), 0U);
}

TEST_P(VolumeTest, WhatWasJustWrittenIsCached) {
    std::string text(300'000, 'k');
    auto file = make_file("a", text);
    EXPECT_TRUE(file->cached(0, text.size()));
    EXPECT_TRUE(file->cached(8191, 2));
    EXPECT_TRUE(file->cached(0, 0));
    EXPECT_FALSE(file->cached(0, text.size() + 100'000)) << "nothing is cached behind the end";
    std::array<std::byte, 10> into;
    EXPECT_EQ(*file->try_read_at(0, into), 10U);
}

TEST_P(VolumeTest, WriteToAReadOnlyOpenFails) {
    make_file("a", "x");
    auto file = volume_->open("a", OpenMode::kRead);
    ASSERT_TRUE(file);
    base::ByteView piece = base::as_bytes("y");
    EXPECT_EQ((*file)->write_at(0, {&piece, 1}).error().code, ErrorCode::kIo);
}

TEST_P(VolumeTest, NamesComeAndGo) {
    ASSERT_TRUE(volume_->make_directory("d"));
    make_file("d/b", "1");
    make_file("d/a", "2");
    ASSERT_TRUE(volume_->rename("d/b", "d/c"));
    ASSERT_TRUE(volume_->sync_directory("d"));
    ASSERT_TRUE(volume_->sync_directory(""));
    EXPECT_THAT(*volume_->list("d"), ElementsAre("a", "c"));
    EXPECT_EQ(volume_->remove_directory("d").error().code, ErrorCode::kExists);
    ASSERT_TRUE(volume_->make_directory("e"));
    EXPECT_EQ(volume_->rename("e", "d").error().code, ErrorCode::kExists);
    ASSERT_TRUE(volume_->unlink("d/a"));
    ASSERT_TRUE(volume_->unlink("d/c"));
    EXPECT_THAT(*volume_->list("d"), IsEmpty());
    ASSERT_TRUE(volume_->remove_directory("d"));
    EXPECT_EQ(volume_->list("d").error().code, ErrorCode::kNotFound);
}

TEST_P(VolumeTest, MarkIsSeenThroughAHeldDirectory) {
    ASSERT_TRUE(volume_->make_directory("s"));
    ASSERT_TRUE(volume_->make_directory("s/1.abc"));
    auto held = volume_->hold("s/1.abc");
    ASSERT_TRUE(held);
    EXPECT_EQ(*(*held)->look(), Liveness::kAlive);

    ASSERT_TRUE(volume_->mark("s/1.abc", MarkKind::kRemove));
    EXPECT_EQ(*(*held)->look(), Liveness::kMarked);
    EXPECT_THAT(*volume_->list("s"), IsEmpty());
    ASSERT_TRUE(volume_->mark("s/1.abc", MarkKind::kRemove)) << "a second marker is as right";
    EXPECT_THAT(*volume_->list("s"), IsEmpty());
}

TEST_P(VolumeTest, KeptMarkLeavesTheDirectory) {
    ASSERT_TRUE(volume_->make_directory("e"));
    auto held = volume_->hold("e");
    ASSERT_TRUE(held);
    ASSERT_TRUE(volume_->mark("e", MarkKind::kKeep));
    ASSERT_TRUE(volume_->mark("e", MarkKind::kKeep));
    EXPECT_EQ(*(*held)->look(), Liveness::kMarked);
    EXPECT_EQ(volume_->make_directory("e").error().code, ErrorCode::kExists);
}

TEST_P(VolumeTest, MarkOfAnAbsentNameClosesIt) {
    ASSERT_TRUE(volume_->mark("never", MarkKind::kKeep));
    EXPECT_EQ(volume_->make_directory("never").error().code, ErrorCode::kExists);
    auto held = volume_->hold("never");
    ASSERT_TRUE(held);
    EXPECT_EQ(*(*held)->look(), Liveness::kMarked);
    ASSERT_TRUE(volume_->mark("never2", MarkKind::kRemove));
    EXPECT_THAT(*volume_->list(""), ElementsAre("never"));
    EXPECT_EQ(volume_->mark("no/parent", MarkKind::kRemove).error().code, ErrorCode::kNotFound);
}

TEST_P(VolumeTest, BeatIsReadByAnother) {
    ASSERT_TRUE(volume_->make_directory("e"));
    auto holder = volume_->hold("e");
    auto watcher = volume_->hold("e");
    ASSERT_TRUE(holder && watcher);
    ASSERT_TRUE((*holder)->beat(41));
    EXPECT_EQ(*(*watcher)->last_beat(), 41);
    ASSERT_TRUE((*holder)->beat(42));
    EXPECT_EQ(*(*watcher)->last_beat(), 42);
    EXPECT_EQ(*(*watcher)->look(), Liveness::kAlive);
}

TEST_P(VolumeTest, LockNamesItsHolder) {
    auto first = volume_->lock("kaas.lock", "4711");
    ASSERT_TRUE(first);
    auto second = volume_->lock("kaas.lock", "1");
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, ErrorCode::kLocked);
    EXPECT_EQ(second.error().context, "4711");
    first->reset();
    EXPECT_TRUE(volume_->lock("kaas.lock", "12"));
    EXPECT_EQ(read("kaas.lock"), "12");
}

TEST_P(VolumeTest, WholeFileHasALimit) {
    make_file("a", "12345");
    EXPECT_EQ(*read_whole(*volume_, "a", 5), "12345");
    EXPECT_EQ(read_whole(*volume_, "a", 4).error().code, ErrorCode::kCorrupt);
    make_file("empty", "");
    EXPECT_EQ(*read_whole(*volume_, "empty", 0), "");
}

TEST_P(VolumeTest, RenameReplacesAFileAndMovesATree) {
    make_file("a", "new");
    make_file("b", "old");
    ASSERT_TRUE(volume_->rename("a", "b"));
    EXPECT_EQ(read("b"), "new");
    EXPECT_EQ(volume_->rename("a", "b").error().code, ErrorCode::kNotFound);
    ASSERT_TRUE(volume_->make_directory("t"));
    make_file("t/x", "inside");
    ASSERT_TRUE(volume_->rename("t", "t.gone"));
    EXPECT_EQ(read("t.gone/x"), "inside");
    EXPECT_EQ(volume_->create("t/y").error().code, ErrorCode::kNotFound);
}

TEST_P(VolumeTest, TreeIsRemovedWhateverIsLeftOfIt) {
    ASSERT_TRUE(volume_->make_directory("a"));
    ASSERT_TRUE(volume_->make_directory("a/b"));
    ASSERT_TRUE(volume_->make_directory("a/b/c"));
    make_file("a/file", "1");
    make_file("a/b/c/file", "2");
    make_file("stays", "3");
    EXPECT_TRUE(remove_tree(*volume_, "a/file"));
    EXPECT_TRUE(remove_tree(*volume_, "a"));
    EXPECT_TRUE(remove_tree(*volume_, "a")) << "gone already";
    EXPECT_THAT(*volume_->list(""), ElementsAre("stays"));
}

TEST_P(VolumeTest, DirectoryThatIsThereIsNotMissing) {
    EXPECT_TRUE(make_directory_if_missing(*volume_, "a"));
    EXPECT_TRUE(make_directory_if_missing(*volume_, "a"));
    EXPECT_FALSE(make_directory_if_missing(*volume_, "b/c"));
}

TEST_P(VolumeTest, UnlinkedFileStaysReadableWhileOpen) {
    auto file = make_file("a", "hello");
    ASSERT_TRUE(volume_->unlink("a"));
    EXPECT_EQ(volume_->unlink("a").error().code, ErrorCode::kNotFound);
    std::array<std::byte, 5> into;
    ASSERT_EQ(*file->read_at(0, into), 5U);
    EXPECT_EQ(base::as_text(into), "hello");
}

TEST_P(VolumeTest, FileIsNoDirectory) {
    make_file("a", "x");
    EXPECT_EQ(volume_->create("a/b").error().code, ErrorCode::kIo);
    EXPECT_EQ(volume_->list("a").error().code, ErrorCode::kIo);
    EXPECT_EQ(volume_->remove_directory("a").error().code, ErrorCode::kIo);
    EXPECT_FALSE(volume_->hold("a"));
    ASSERT_TRUE(volume_->make_directory("d"));
    EXPECT_EQ(volume_->unlink("d").error().code, ErrorCode::kIo);
    EXPECT_FALSE(volume_->open("d", OpenMode::kReadWrite));
}

TEST_P(VolumeTest, ThreadsShareAVolumeAndAFile) {
    auto shared = make_file("shared", "....");
    std::vector<std::thread> threads;
    threads.reserve(4);
    for (int i = 0; i < 4; ++i) {
        threads.emplace_back([&, i] {
            const std::string own = std::to_string(i);
            const base::ByteView piece = base::as_bytes(own);
            EXPECT_TRUE(volume_->make_directory(own));
            for (int n = 0; n < 20; ++n) {
                const auto path = own + "/" + std::to_string(n);
                auto file = volume_->create(path);
                ASSERT_TRUE(file);
                EXPECT_TRUE((*file)->write_at(0, {&piece, 1}));
                EXPECT_TRUE(shared->write_at(static_cast<std::uint64_t>(i), {&piece, 1}));
                EXPECT_TRUE(volume_->list(""));
                if (n % 2 == 0) EXPECT_TRUE(volume_->unlink(path));
            }
            EXPECT_TRUE(shared->sync());
            EXPECT_TRUE(volume_->sync_directory(own));
        });
    }
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(read("shared"), "0123");
    for (int i = 0; i < 4; ++i) EXPECT_EQ(volume_->list(std::to_string(i))->size(), 10U);
}

}  // namespace
}  // namespace kaas::storage
