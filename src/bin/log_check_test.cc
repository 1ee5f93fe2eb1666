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
    EXPECT_EQ(shown_, "1 partitions, 1 segments, 0 batches, 0 slots: all is well\n");
}

TEST_F(LogCheck, DamageIsNamedByItsAbsolutePath) {
    std::filesystem::remove(log_);
    EXPECT_FALSE(run({.paths = {directory_->path() + "/"}, .json = true}));
    EXPECT_THAT(shown_, HasSubstr("{\"file\":\"" + log_ + "\""));
    EXPECT_THAT(error_, HasSubstr("1 places are damaged"));
}

TEST_F(LogCheck, TheSignTheControlLogSlotsAndJournalsAreLookedAt) {
    const auto root = std::filesystem::path(directory_->path());
    const auto put = [&](const std::string& path, const char* text) {
        std::filesystem::create_directories((root / path).parent_path());
        std::ofstream(root / path) << text;
    };
    put("kaas.json", "{\"format\":1,\"cluster\":\"c\"}\n");
    put("__cluster/control/00000001/control-1.jsonl",
        "{\"log\":{\"kind\":\"control\",\"epoch\":1,\"file\":1}}\n");
    put("__cluster/groups/7/00000002/slot-1.jsonl",
        "{\"log\":{\"kind\":\"slot\",\"epoch\":2,\"file\":1}}\n"
        "{\"change\":\"group-deleted\",\"group\":\"g\"}\n");
    put("__cluster/groups/8/00000000/slot-1.jsonl", "");  // taken over, and never written
    put("__cluster/txns/0/00000000/slot-1.jsonl",
        "{\"log\":{\"kind\":\"slot\",\"epoch\":0,\"file\":1}}\n");
    put("__journals/1.A/00000000/journal-1.jsonl",
        "{\"log\":{\"kind\":\"journal\",\"epoch\":0,\"file\":1},\"files\":[3]}\n");
    put("__journals/1.A/00000000/00000000000000000003.journal", "kaasjnl2");
    ASSERT_TRUE(run({.paths = {root}})) << error_ << shown_;
    EXPECT_THAT(shown_, HasSubstr(", 2 slots: all is well")) << "one of three was never written";
    const struct {
        const char* file;
        const char* text;
        const char* told;
    } table[] = {
        {"kaas.json", "{\"format\":1,\"cluster\":\"c\"]\n", "kaas.json at byte 25: "},
        {"kaas.json", "{\"format\":1,\"cluster\":\"c\",\"crc\":\"00000000\"}\n", "its checksum"},
        {"__cluster/control/00000001/control-1.jsonl",
         "{\"log\":{\"kind\":\"control\",\"epoch\":2,\"file\":1}}\n",
         "control-1.jsonl at byte 0: "},
        {"__cluster/control/00000001/control-1.jsonl", "", "none of its epochs"},
        {"__cluster/groups/7/00000002/slot-1.jsonl",
         "{\"log\":{\"kind\":\"slot\",\"epoch\":2,\"file\":1}}\n{\"a\":2,\"crc\":\"00000000\"}\n",
         "slot-1.jsonl at byte 43: its checksum"},
        {"__cluster/groups/7/00000002/slot-1.jsonl",
         "{\"log\":{\"kind\":\"slot\",\"epoch\":2,\"file\":1},\"format\":1}\n{\"group\":17}\n",
         "groups/7/00000002/slot-1.jsonl at byte 54: change '' is not known"},
        {"__cluster/groups/7/00000002/slot-1.jsonl",
         "{\"log\":{\"kind\":\"slot\",\"epoch\":2,\"file\":1},\"groups\":7}\n",
         "groups/7/00000002/slot-1.jsonl at byte 0: picture of a group slot"},
        {"__cluster/txns/0/00000000/slot-1.jsonl",
         "{\"log\":{\"kind\":\"slot\",\"epoch\":0,\"file\":1}}\n{\"transactional_id\":\"t\"}\n",
         "txns/0/00000000/slot-1.jsonl at byte 43: "},
        {"__cluster/txns/0/00000000/slot-1.jsonl", "no JSON\n", "slot-1.jsonl at byte 0"},
        {"__journals/1.A/00000000/00000000000000000003.journal", "xx", "not the beginning"},
        {"__journals/1.A/00000000/journal-1.jsonl", "no JSON\n", "journal-1.jsonl at byte 0"},
    };
    for (const auto& row : table) {
        SCOPED_TRACE(row.told);
        std::string error;
        const auto good = read_file(root / row.file, error);
        ASSERT_TRUE(good) << error;
        put(row.file, row.text);
        EXPECT_FALSE(run({.paths = {root}}));
        EXPECT_THAT(shown_, HasSubstr(row.told));
        EXPECT_THAT(shown_, HasSubstr(root.string() + "/"));
        EXPECT_THAT(error_, HasSubstr("1 places are damaged")) << shown_;
        put(row.file, good->c_str());
    }
}

TEST_F(LogCheck, APathWithoutAPartitionIsAnError) {
    EXPECT_FALSE(run({.paths = {directory_->path() + "/orders.A/0/00000000"}}));
    EXPECT_THAT(error_, HasSubstr("no partition"));
}

TEST_F(LogCheck, TheDirectoryOfAClusterItselfNeedsNoPartitions) {
    std::filesystem::remove_all(directory_->path() + "/orders.A");
    std::ofstream(directory_->path() + "/kaas.json") << "{\"format\":1,\"cluster\":\"c\"}\n";
    EXPECT_TRUE(run({.paths = {directory_->path()}})) << error_;
    EXPECT_EQ(shown_, "0 partitions, 0 segments, 0 batches, 0 slots: all is well\n");
}

TEST_F(LogCheck, AnAbsentPathIsNamed) {
    EXPECT_FALSE(run({.paths = {directory_->path() + "/gone"}}));
    EXPECT_THAT(error_, HasSubstr("gone"));
}

}  // namespace
}  // namespace kaas::bin
