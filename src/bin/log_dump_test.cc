// Goal: `kaas log dump` reads real files by the paths that a user gives, and its answer tells a
// damage. Method: files in a temporary directory, relative and absolute paths; the output goes to a
// temporary file.

#include "bin/log_dump.h"

#include "bin/cli.h"
#include "bin/local_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

namespace kaas::bin {
namespace {

using ::testing::HasSubstr;

class LogDump : public ::testing::Test {
protected:
    LogDump() : directory_(TemporaryDirectory::make(error_)) {
        std::ofstream(directory_->path() + "/0.index") << std::string("\0\0\0\x01\0\0\0\x02", 8);
    }

    bool run(const LogDumpCommand& command) {
        std::FILE* out = std::tmpfile();
        bool good = dump_logs(command, out, error_);
        shown_.assign(static_cast<std::size_t>(std::ftell(out)), ' ');
        EXPECT_EQ(std::fseek(out, 0, SEEK_SET), 0);
        shown_.resize(std::fread(shown_.data(), 1, shown_.size(), out));
        std::fclose(out);
        return good;
    }

    std::string error_;
    std::string shown_;
    std::optional<TemporaryDirectory> directory_;
};

TEST_F(LogDump, FileByItsAbsolutePath) {
    const std::string path = directory_->path() + "/0.index";
    ASSERT_TRUE(run({.paths = {path}})) << error_;
    EXPECT_EQ(shown_, "file: " + path + "\nindex  offset: 1  position: 2\n");
}

TEST_F(LogDump, DirectoryByARelativePathAsJson) {
    const auto path = std::filesystem::relative(directory_->path()).string();
    ASSERT_TRUE(run({.paths = {path + "/"}, .json = true})) << error_;
    EXPECT_EQ(shown_, "{\"file\":\"" + path +
                          "/0.index\",\"item\":\"index\",\"offset\":1,\"position\":2}\n");
}

TEST_F(LogDump, AbsentFileIsNamed) {
    EXPECT_FALSE(run({.paths = {directory_->path() + "/gone"}}));
    EXPECT_EQ(error_, directory_->path() + "/gone: No such file or directory");
}

TEST_F(LogDump, DamageFailsAfterAllIsShown) {
    std::ofstream(directory_->path() + "/0.log") << "no batch";
    EXPECT_FALSE(run({.paths = {directory_->path()}}));
    EXPECT_THAT(shown_, HasSubstr("DAMAGE"));
    EXPECT_THAT(shown_, HasSubstr("index  offset: 1"));
    EXPECT_THAT(error_, HasSubstr("1 places are damaged"));
}

}  // namespace
}  // namespace kaas::bin
