// Goal: the limit is the least that the machine or a control group sets. Method: made-up /proc and
// /sys/fs/cgroup.
#include "net/memory_limit.h"

#include <gtest/gtest.h>

#include <stdlib.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

namespace kaas::net {
namespace {

struct Case {
    const char* situation;
    std::vector<std::pair<std::string, std::string>> files;
    std::uint64_t limit;
};

const std::string kMachine = "MemTotal:       8000000 kB\nMemFree:        10 kB\n";
constexpr std::uint64_t kMachineBytes = 8'000'000ULL * 1024;

TEST(MemoryLimit, IsTheLeastThatIsSetAnywhere) {
    const std::vector<Case> cases = {
        {"no control group", {{"proc/meminfo", kMachine}}, kMachineBytes},
        {"no limit",
         {{"proc/meminfo", kMachine},
          {"proc/self/cgroup", "0::/a/b\n"},
          {"cg/a/b/memory.max", "max\n"}},
         kMachineBytes},
        {"own limit",
         {{"proc/meminfo", kMachine},
          {"proc/self/cgroup", "0::/a/b\n"},
          {"cg/a/b/memory.max", "1000000\n"}},
         1'000'000},
        {"limit of a parent",
         {{"proc/meminfo", kMachine},
          {"proc/self/cgroup", "0::/a/b\n"},
          {"cg/a/b/memory.max", "max\n"},
          {"cg/a/memory.max", "2000000\n"}},
         2'000'000},
        {"container: the group is the root",
         {{"proc/meminfo", kMachine},
          {"proc/self/cgroup", "0::/\n"},
          {"cg/memory.max", "3000000\n"}},
         3'000'000},
        {"container: the path is the host's",
         {{"proc/meminfo", kMachine},
          {"proc/self/cgroup", "0::/kubepods/pod1\n"},
          {"cg/memory.max", "3000000\n"}},
         3'000'000},
        {"above the machine",
         {{"proc/meminfo", kMachine},
          {"proc/self/cgroup", "0::/\n"},
          {"cg/memory.max", "99000000000000\n"}},
         kMachineBytes},
        {"version 1",
         {{"proc/meminfo", kMachine},
          {"proc/self/cgroup", "5:cpu:/c\n4:memory:/a\n"},
          {"cg/memory/a/memory.limit_in_bytes", "4000000\n"}},
         4'000'000},
        {"version 1 beside an empty version 2",
         {{"proc/meminfo", kMachine},
          {"proc/self/cgroup", "4:memory:/a\n0::/\n"},
          {"cg/memory/memory.limit_in_bytes", "5000000\n"}},
         5'000'000},
    };
    std::string pattern = (std::filesystem::temp_directory_path() / "kaas-limit-XXXXXX").string();
    std::filesystem::path root = ::mkdtemp(pattern.data());
    for (const Case& test : cases) {
        auto here = root / test.situation;
        for (const auto& [name, text] : test.files) {
            std::filesystem::create_directories((here / name).parent_path());
            std::ofstream(here / name) << text;
        }
        EXPECT_EQ(memory_limit_bytes((here / "proc").string(), (here / "cg").string()), test.limit)
            << test.situation;
    }
    std::filesystem::remove_all(root);
}

TEST(MemoryLimit, OfThisMachineIsSomething) {
    EXPECT_GT(default_request_memory_bytes(), std::size_t{1} << 20);
    EXPECT_LT(default_request_memory_bytes(), std::size_t{1} << 50);
}

}  // namespace
}  // namespace kaas::net
