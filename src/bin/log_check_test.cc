// Goal: `kaas log check` finds partitions by the paths that a user gives, and its answer tells
// damage. Method: a manifest and its segment in a temporary directory; the output goes to a
// temporary file. What is damage, storage's own tests tell.

#include "bin/log_check.h"

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

class LogCheck : public ::testing::Test {
protected:
    LogCheck() : directory_(TemporaryDirectory::make(error_)) {
        const auto epoch = directory_->path() + "/orders.A/0/00000000";
        std::filesystem::create_directories(epoch);
        log_ = epoch + "/00000000000000000000.log";
        std::ofstream(epoch + "/manifest-1.jsonl")
            << R"({"log":{"kind":"manifest","epoch":0,"file":1},)"
            << R"("owner":{"broker":1,"incarnation":"AAAAAAAAAAAAAAAAAAAAAA"},"segments":[],)"
            << R"("active":{"epoch":0,"base":0,"end":0,"bytes":0},"epochs":[[0,0]],)"
            << R"("log_start":0,"producers":[]})"
            << "\n";
        std::ofstream{log_};
    }

    bool run(const LogCheckCommand& command) {
        std::FILE* out = std::tmpfile();
        bool good = check_logs(command, out, error_);
        shown_.assign(static_cast<std::size_t>(std::ftell(out)), ' ');
        EXPECT_EQ(std::fseek(out, 0, SEEK_SET), 0);
        shown_.resize(std::fread(shown_.data(), 1, shown_.size(), out));
        std::fclose(out);
        return good;
    }

    std::string error_;
    std::string shown_;
    std::string log_;
    std::optional<TemporaryDirectory> directory_;
};

TEST_F(LogCheck, PartitionsBelowADirectoryAreFound) {
    ASSERT_TRUE(run({.paths = {directory_->path()}})) << error_ << shown_;
    EXPECT_EQ(shown_, "1 partitions, 1 segments, 0 batches: all is well\n");
}

TEST_F(LogCheck, DamageIsNamedByItsAbsolutePath) {
    std::filesystem::remove(log_);
    EXPECT_FALSE(run({.paths = {directory_->path() + "/"}, .json = true}));
    EXPECT_THAT(shown_, HasSubstr("{\"file\":\"" + log_ + "\""));
    EXPECT_THAT(error_, HasSubstr("1 places are damaged"));
}

TEST_F(LogCheck, APathWithoutAPartitionIsAnError) {
    EXPECT_FALSE(run({.paths = {directory_->path() + "/orders.A/0/00000000"}}));
    EXPECT_THAT(error_, HasSubstr("no partition"));
}

TEST_F(LogCheck, AnAbsentPathIsNamed) {
    EXPECT_FALSE(run({.paths = {directory_->path() + "/gone"}}));
    EXPECT_THAT(error_, HasSubstr("gone"));
}

}  // namespace
}  // namespace kaas::bin
