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
