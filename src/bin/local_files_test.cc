// Goal: configuration is read, and ephemeral data goes, whatever it is. Method: real files in a
// directory of the test's own.

#include "bin/local_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <utility>

namespace kaas::bin {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

TEST(TemporaryDirectory, IsNewAndGoesWithAllThatIsInIt) {
    std::string error;
    fs::path path;
    {
        auto first = TemporaryDirectory::make(error);
        auto second = TemporaryDirectory::make(error);
        ASSERT_TRUE(first && second) << error;
        EXPECT_NE(first->path(), second->path());
        path = first->path();
        TemporaryDirectory moved = *std::move(first);
        fs::create_directories(path / "topic" / "0");
        std::ofstream(path / "topic" / "0" / "log") << "x";
    }
    EXPECT_FALSE(fs::exists(path));
}

TEST(TemporaryDirectory, OfAKilledProcessGoesAtTheNextStart) {
    std::string error;
    auto living = TemporaryDirectory::make(error);
    ASSERT_TRUE(living) << error;
    const fs::path parent = fs::path(living->path()).parent_path().parent_path();
    // As kill -9 leaves it: the file of the lock is there, and nobody holds it.
    const fs::path dead = parent / "kaas-a-dead-one";
    fs::create_directories(dead / "topic");
    std::ofstream(dead / "kaas.ephemeral") << "4711";
    // Just made by somebody who has not come to its lock; and a stranger of such a name.
    const fs::path young = parent / "kaas-a-young-one";
    fs::create_directories(young);
    const std::ofstream unlocked(young / "kaas.ephemeral");
    const fs::path stranger = parent / "kaas-a-strange-one";
    fs::create_directories(stranger);

    const auto removed = TemporaryDirectory::remove_dead();
    EXPECT_THAT(removed, ::testing::Contains(dead.string()));
    EXPECT_FALSE(fs::exists(dead));
    EXPECT_TRUE(fs::exists(living->path()));
    EXPECT_TRUE(fs::exists(young));
    EXPECT_TRUE(fs::exists(stranger));
    fs::remove_all(young);
    fs::remove_all(stranger);
}

TEST(ReadFile, GivesTheContentThroughALink) {
    std::string error;
    auto home = TemporaryDirectory::make(error);
    ASSERT_TRUE(home) << error;
    std::ofstream(home->path() + "/file") << "a=1\n";
    fs::create_symlink("file", home->path() + "/link");
    EXPECT_EQ(read_file(home->path() + "/link", error), "a=1\n");
}

TEST(ReadFile, SaysWhyItCannot) {
    std::string error;
    auto home = TemporaryDirectory::make(error);
    ASSERT_TRUE(home) << error;
    EXPECT_EQ(read_file(home->path() + "/absent", error), std::nullopt);
    EXPECT_THAT(error, HasSubstr("absent: No such file"));
    EXPECT_EQ(read_file(home->path(), error), std::nullopt);
    EXPECT_THAT(error, HasSubstr("Is a directory"));
}

}  // namespace
}  // namespace kaas::bin
