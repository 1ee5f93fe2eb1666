// Goal: MemoryVolume forgets exactly what was not synced, and fails where it is told to.
// Method: small scenarios, each ended by a crash; random fates are drawn from printed seeds.
#include "storage/memory_volume.h"

#include "base/bytes.h"
#include "storage/error.h"
#include "storage/volume.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace kaas::storage {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class MemoryVolumeTest : public testing::Test {
protected:
    static Result<void> write(File& file, std::uint64_t offset, std::string_view text) {
        base::ByteView piece = base::as_bytes(text);
        return file.write_at(offset, {&piece, 1});
    }
    /// A file whose name is durable.
    std::unique_ptr<File> durable_file(const std::string& path, std::string_view text) {
        auto file = volume_.create(path);
        EXPECT_TRUE(write(**file, 0, text));
        EXPECT_TRUE((*file)->sync());
        EXPECT_TRUE(volume_.sync_directory(""));
        return std::move(*file);
    }
    std::string read(const std::string& path) {
        auto text = read_whole(volume_, path, 1 << 20);
        return text ? *text : "error: " + text.error().context;
    }

    MemoryVolume volume_;
};

TEST_F(MemoryVolumeTest, UnsyncedBytesAreLost) {
    auto file = durable_file("a", "kept");
    ASSERT_TRUE(write(*file, 4, "lost"));
    EXPECT_EQ(read("a"), "keptlost");
    volume_.crash();
    EXPECT_EQ(read("a"), "kept");
}

TEST_F(MemoryVolumeTest, UnsyncedOverwriteIsLost) {
    auto file = durable_file("a", "0123");
    ASSERT_TRUE(write(*file, 1, "xy"));
    EXPECT_EQ(read("a"), "0xy3");
    volume_.crash();
    EXPECT_EQ(read("a"), "0123");
}

TEST_F(MemoryVolumeTest, SyncedFileWithoutSyncedNameIsLost) {
    auto file = volume_.create("a");
    ASSERT_TRUE(write(**file, 0, "x"));
    ASSERT_TRUE((*file)->sync());
    volume_.crash();
    EXPECT_THAT(*volume_.list(""), IsEmpty());
}

TEST_F(MemoryVolumeTest, DirectoryWithoutSyncedNameLosesAllInside) {
    ASSERT_TRUE(volume_.make_directory("d"));
    ASSERT_TRUE(volume_.create("d/a"));
    ASSERT_TRUE(volume_.sync_directory("d"));
    volume_.crash();
    EXPECT_THAT(*volume_.list(""), IsEmpty());
}

TEST_F(MemoryVolumeTest, UnsyncedRemovalComesBack) {
    durable_file("a", "x");
    ASSERT_TRUE(volume_.unlink("a"));
    volume_.crash();
    EXPECT_EQ(read("a"), "x");
    ASSERT_TRUE(volume_.unlink("a"));
    ASSERT_TRUE(volume_.sync_directory(""));
    volume_.crash();
    EXPECT_THAT(*volume_.list(""), IsEmpty());
}

TEST_F(MemoryVolumeTest, RenameAcrossDirectoriesIsNeverHalf) {
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
        SCOPED_TRACE(seed);
        MemoryVolume volume;
        ASSERT_TRUE(volume.make_directory("a"));
        ASSERT_TRUE(volume.make_directory("b"));
        ASSERT_TRUE(volume.create("a/f"));
        ASSERT_TRUE(volume.sync_directory("a"));
        ASSERT_TRUE(volume.sync_directory(""));
        ASSERT_TRUE(volume.rename("a/f", "b/f"));
        ASSERT_TRUE(volume.rename("b/f", "b/g"));
        volume.crash({.seed = seed});
        EXPECT_EQ(volume.list("a")->size() + volume.list("b")->size(), 1U);
    }
}

TEST_F(MemoryVolumeTest, SyncOfOneDirectoryTakesTheRenameWhole) {
    ASSERT_TRUE(volume_.make_directory("a"));
    ASSERT_TRUE(volume_.make_directory("b"));
    ASSERT_TRUE(volume_.sync_directory(""));
    ASSERT_TRUE(volume_.create("b/f"));
    ASSERT_TRUE(volume_.create("a/f"));
    ASSERT_TRUE(volume_.rename("a/f", "b/f"));
    ASSERT_TRUE(volume_.sync_directory("a"));
    ASSERT_TRUE(volume_.sync_directory("b"));
    volume_.crash();
    EXPECT_THAT(*volume_.list("a"), IsEmpty());
    EXPECT_THAT(*volume_.list("b"), ElementsAre("f"));
}

TEST_F(MemoryVolumeTest, SeedsTearTailsInEveryWay) {
    std::set<std::string> seen;
    for (std::uint64_t seed = 0; seed < 300; ++seed) {
        MemoryVolume volume;
        auto file = volume.create("a");
        ASSERT_TRUE(write(**file, 0, "ab"));
        ASSERT_TRUE((*file)->sync());
        ASSERT_TRUE(volume.sync_directory(""));
        ASSERT_TRUE(write(**file, 2, "cd"));
        volume.crash({.seed = seed});
        seen.insert(*read_whole(volume, "a", 100));
    }
    using namespace std::string_literals;
    EXPECT_THAT(seen, ElementsAre("ab", "ab\0\0"s, "abc", "abc\0"s, "abcd"));
}

TEST_F(MemoryVolumeTest, HolesLosePagesInAnyOrder) {
    std::set<std::string> seen;
    for (std::uint64_t seed = 0; seed < 3000; ++seed) {
        MemoryVolume volume;
        auto file = volume.create("a");
        ASSERT_TRUE(volume.sync_directory(""));
        ASSERT_TRUE(write(**file, 0, "abc"));
        ASSERT_TRUE((*file)->sync());
        ASSERT_TRUE(write(**file, 3, "de"));
        ASSERT_TRUE(write(**file, 3, "DE"));
        volume.crash({.seed = seed, .holes = true});
        seen.insert(*read_whole(volume, "a", 100));
    }
    using namespace std::string_literals;
    EXPECT_THAT(seen, ElementsAre("abc", "abc\0E"s, "abc\0e"s, "abcD", "abcDE", "abcDe", "abcd",
                                  "abcdE", "abcde"));
}

TEST_F(MemoryVolumeTest, SameSeedSameFate) {
    auto fate = [](std::uint64_t seed) {
        MemoryVolume volume;
        for (int i = 0; i < 50; ++i) std::ignore = volume.create(std::to_string(i));
        volume.crash({.seed = seed});
        return *volume.list("");
    };
    EXPECT_EQ(fate(7), fate(7));
    EXPECT_NE(fate(7), fate(8));
}

TEST_F(MemoryVolumeTest, FailedSyncLeavesReadableBytesThatNoLaterSyncSaves) {
    auto file = durable_file("a", "kept");
    ASSERT_TRUE(write(*file, 4, "bad!"));
    volume_.fail_nth(Operation::kSync, 1, {});
    EXPECT_EQ(file->sync().error().code, ErrorCode::kIo);
    EXPECT_EQ(read("a"), "keptbad!");
    ASSERT_TRUE(file->sync());
    volume_.crash();
    EXPECT_EQ(read("a"), "kept");
}

TEST_F(MemoryVolumeTest, SyncThatLostOnlyItsAnswerIsDurable) {
    auto file = durable_file("a", "");
    ASSERT_TRUE(write(*file, 0, "x"));
    volume_.fail_nth(Operation::kSync, 1, {.effect = Fault::Effect::kWhole});
    EXPECT_FALSE(file->sync());
    volume_.crash();
    EXPECT_EQ(read("a"), "x");
}

TEST_F(MemoryVolumeTest, ShortWriteLeavesItsFirstHalf) {
    auto file = durable_file("a", "");
    volume_.fail_nth(Operation::kWrite, 2, {ErrorCode::kNoSpace, Fault::Effect::kHalf});
    ASSERT_TRUE(write(*file, 0, "ok"));
    EXPECT_EQ(write(*file, 2, "half").error().code, ErrorCode::kNoSpace);
    EXPECT_EQ(read("a"), "okha");
    EXPECT_TRUE(write(*file, 4, "again"));
}

TEST_F(MemoryVolumeTest, HaltEndsEverythingUntilTheCrash) {
    auto file = durable_file("a", "x");
    volume_.halt_at(volume_.steps() + 1);
    EXPECT_TRUE(volume_.create("b"));
    EXPECT_EQ(volume_.create("c").error().code, ErrorCode::kIo);
    EXPECT_EQ(file->sync().error().code, ErrorCode::kIo);
    EXPECT_EQ(volume_.list("").error().code, ErrorCode::kIo);
    volume_.crash();
    EXPECT_THAT(*volume_.list(""), ElementsAre("a"));
    EXPECT_EQ(write(*file, 0, "y").error().code, ErrorCode::kIo) << "a dead machine's file";
    EXPECT_EQ(read("a"), "x");
}

TEST_F(MemoryVolumeTest, HookGivesAnotherProcessItsTurn) {
    std::vector<std::string> trace;
    volume_.set_hook([&](const MemoryVolume::Step& step) -> std::optional<Fault> {
        trace.push_back(std::string(name_of(step.operation)) + " " + step.path);
        if (step.operation == Operation::kMakeDirectory) EXPECT_TRUE(volume_.create("between"));
        if (step.path == "bad") return Fault{.code = ErrorCode::kTooManyOpen};
        return std::nullopt;
    });
    ASSERT_TRUE(volume_.make_directory("d"));
    EXPECT_EQ(volume_.create("bad").error().code, ErrorCode::kTooManyOpen);
    EXPECT_THAT(trace, ElementsAre("mkdir d", "create between", "create bad"));
}

TEST_F(MemoryVolumeTest, MarkCountsOnlyWhenItsLastStepIsDone) {
    for (std::uint64_t cut = 0; cut < 5; ++cut) {
        SCOPED_TRACE(cut);
        MemoryVolume volume;
        ASSERT_TRUE(volume.make_directory("s"));
        ASSERT_TRUE(volume.make_directory("s/1"));
        ASSERT_TRUE(volume.sync_directory("s"));
        ASSERT_TRUE(volume.sync_directory(""));
        volume.halt_at(volume.steps() + cut);
        bool marked = volume.mark("s/1", MarkKind::kRemove).has_value();
        EXPECT_EQ(marked, cut == 4);
        volume.crash();
        auto held = volume.hold("s/1");
        bool over = !held || *(*held)->look() == Liveness::kMarked;
        EXPECT_EQ(over, cut >= 2) << "durable with the fsync of its mode";
    }
}

TEST_F(MemoryVolumeTest, LockDiesWithTheMachine) {
    auto held = volume_.lock("l", "1");
    ASSERT_TRUE(held);
    ASSERT_TRUE(volume_.sync_directory(""));
    volume_.crash();
    auto next = volume_.lock("l", "2");
    ASSERT_TRUE(next);
    held->reset();
    EXPECT_EQ(volume_.lock("l", "3").error().code, ErrorCode::kLocked);
}

TEST_F(MemoryVolumeTest, CacheCanBeCold) {
    auto file = durable_file("a", "hello");
    std::array<std::byte, 5> into;
    EXPECT_TRUE(file->cached(0, 5));
    EXPECT_EQ(*file->try_read_at(0, into), 5U);
    volume_.set_cached(false);
    EXPECT_FALSE(file->cached(0, 5));
    EXPECT_EQ(*file->try_read_at(0, into), 0U);
    EXPECT_EQ(*file->read_at(0, into), 5U);
}

}  // namespace
}  // namespace kaas::storage
