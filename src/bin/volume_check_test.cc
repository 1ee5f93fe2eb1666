// Goal: `kaas volume check` says of a directory what it found, for people and for scripts. Method:
// directories of this machine, and files that are none.

#include "bin/volume_check.h"

#include "bin/cli.h"
#include "bin/other_process.h"
#include "cluster/error.h"
#include "storage/testing_volume.h"

#include <boost/json/parse.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace kaas::bin {
namespace {

using ::testing::HasSubstr;

struct Said {
    bool good = false;
    std::string text;
    std::string error;
};

Said check(const VolumeCheckCommand& command) {
    Said said;
    char* text = nullptr;
    std::size_t length = 0;
    std::FILE* out = ::open_memstream(&text, &length);  // NOLINT(misc-include-cleaner): POSIX
    said.good = check_volumes(command, out, said.error);
    (void)std::fclose(out);
    said.text.assign(text, length);
    std::free(text);
    return said;
}

TEST(VolumeCheckCommand, ADirectoryOfThisMachineIsFit) {
    storage::testing::TemporaryDirectory directory;
    const auto said = check({.paths = {directory.path()}, .json = false});
    EXPECT_TRUE(said.good) << said.text << said.error;
    for (const auto* wanted : {"mount", "mark", "visibility", "fsync", "other process"}) {
        EXPECT_THAT(said.text, HasSubstr(wanted));
    }
}

TEST(VolumeCheckCommand, TwoWaysToOneVolumeAreHeldAgainstEachOther) {
    storage::testing::TemporaryDirectory directory;
    storage::testing::TemporaryDirectory stranger;
    const auto again = directory.path() + "/.";
    const auto said = check({.paths = {directory.path(), stranger.path(), again}, .json = true});
    EXPECT_TRUE(said.good) << said.text << said.error;
    EXPECT_THAT(said.text, HasSubstr(directory.path() + " seen from " + again));
    EXPECT_THAT(said.text, ::testing::Not(HasSubstr("seen from " + stranger.path())));
    const auto first = boost::json::parse(said.text.substr(0, said.text.find('\n')));
    EXPECT_EQ(first.at("property").as_string(), "mount");
    EXPECT_EQ(first.at("volume").as_string(), directory.path());
}

TEST(VolumeCheckCommand, WhatIsNoDirectoryIsNamed) {
    const auto said = check({.paths = {"/dev/null"}, .json = false});
    EXPECT_FALSE(said.good);
    EXPECT_THAT(said.error, HasSubstr("/dev/null"));
}

TEST(OtherProcess, SaysWhatCameOfIt) {
    using cluster::ErrorCode;
    EXPECT_TRUE(in_other_process([] { return cluster::Result<void>(); }));
    for (const auto code : {ErrorCode::kUnfitVolume, ErrorCode::kStorage}) {
        const auto failed = in_other_process(
            [code]() -> cluster::Result<void> { return cluster::fail(code, "why"); });
        ASSERT_FALSE(failed);
        EXPECT_EQ(failed.error().code, code);
        EXPECT_EQ(failed.error().context, "why");
    }
    EXPECT_EQ(in_other_process([]() -> cluster::Result<void> { ::_Exit(3); }).error().code,
              ErrorCode::kStorage);
}

}  // namespace
}  // namespace kaas::bin
