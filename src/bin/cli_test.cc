// Goal: a command line does what its writer meant, or says how to write it. Method: argument lists,
// named by the fault.

#include "bin/cli.h"

#include "base/version.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace kaas::bin {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(CommandLine, ServeNeedsNothing) {
    auto command = parse_command_line({"serve"});
    const auto* serve = std::get_if<ServeCommand>(&command);
    ASSERT_NE(serve, nullptr);
    EXPECT_FALSE(serve->config_file);
    EXPECT_TRUE(serve->overrides.empty());
    EXPECT_FALSE(serve->ephemeral);
}

TEST(CommandLine, ServeTakesAllItsOptionsInAnyOrder) {
    auto command =
        parse_command_line({"serve", "--override", "a=1", "--ephemeral", "--override=b=2,3", "-c",
                            "server.properties", "--override", "c="});
    const auto* serve = std::get_if<ServeCommand>(&command);
    ASSERT_NE(serve, nullptr);
    EXPECT_EQ(serve->config_file, "server.properties");
    EXPECT_THAT(serve->overrides, ElementsAre("a=1", "b=2,3", "c="));
    EXPECT_TRUE(serve->ephemeral);
}

TEST(CommandLine, LogDumpTakesPathsAndOptionsInAnyOrder) {
    auto command = parse_command_line({"log", "dump", "a.log", "--records", "-o", "json", "b"});
    const auto* dump = std::get_if<LogDumpCommand>(&command);
    ASSERT_NE(dump, nullptr);
    EXPECT_THAT(dump->paths, ElementsAre("a.log", "b"));
    EXPECT_TRUE(dump->json);
    EXPECT_TRUE(dump->records);
    command = parse_command_line({"log", "dump", "a"});
    EXPECT_FALSE(std::get<LogDumpCommand>(command).json);
    EXPECT_FALSE(std::get<LogDumpCommand>(command).records);
}

TEST(CommandLine, LogCheckTakesPaths) {
    auto command = parse_command_line({"log", "check", "a", "-o", "json", "b"});
    const auto* check = std::get_if<LogCheckCommand>(&command);
    ASSERT_NE(check, nullptr);
    EXPECT_THAT(check->paths, ElementsAre("a", "b"));
    EXPECT_TRUE(check->json);
    EXPECT_NE(std::get_if<WrongCommand>(&(command = parse_command_line({"log", "check"}))),
              nullptr);
}

TEST(CommandLine, VolumeCheckTakesDirectories) {
    auto command = parse_command_line({"volume", "check", "a", "-o", "json", "b"});
    const auto* check = std::get_if<VolumeCheckCommand>(&command);
    ASSERT_NE(check, nullptr);
    EXPECT_THAT(check->paths, ElementsAre("a", "b"));
    EXPECT_TRUE(check->json);
    command = parse_command_line({"volume", "check", "a"});
    EXPECT_FALSE(std::get<VolumeCheckCommand>(command).json);
}

TEST(CommandLine, ClusterStatusTakesDirectories) {
    auto command = parse_command_line({"cluster", "status", "-o", "json", "a", "b"});
    const auto* status = std::get_if<ClusterStatusCommand>(&command);
    ASSERT_NE(status, nullptr);
    EXPECT_THAT(status->paths, ElementsAre("a", "b"));
    EXPECT_TRUE(status->json);
    command = parse_command_line({"cluster", "status", "a"});
    EXPECT_FALSE(std::get<ClusterStatusCommand>(command).json);
}

struct Shown {
    std::string_view what;
    std::vector<std::string> arguments;
    std::string text;
};
std::ostream& operator<<(std::ostream& out, const Shown& one) { return out << one.what; }

class CommandLineShows : public ::testing::TestWithParam<Shown> {};

TEST_P(CommandLineShows, AndSucceeds) {
    auto command = parse_command_line(GetParam().arguments);
    const auto* show = std::get_if<ShowCommand>(&command);
    ASSERT_NE(show, nullptr);
    EXPECT_THAT(show->text, HasSubstr(GetParam().text));
}

INSTANTIATE_TEST_SUITE_P(
    All, CommandLineShows,
    ::testing::Values(
        Shown{"Version", {"--version"}, "kaas " + std::string(base::kVersion) + "\n"},
        Shown{"Help", {"--help"}, "Usage: kaas COMMAND"},
        Shown{"ShortHelp", {"-h"}, "Usage: kaas COMMAND"},
        Shown{"HelpOfServe", {"serve", "--help"}, "Usage: kaas serve"},
        Shown{"HelpOfLog", {"log", "--help"}, "Usage: kaas log dump"},
        Shown{"HelpOfLogDump", {"log", "dump", "-h"}, "Usage: kaas log dump"},
        Shown{"HelpOfCluster", {"cluster", "-h"}, "Usage: kaas cluster status"},
        Shown{"HelpOfVolume", {"volume", "-h"}, "Usage: kaas volume check"},
        Shown{"HelpOfVolumeCheck", {"volume", "check", "-h"}, "Usage: kaas volume check"},
        Shown{"HelpBesideOptions", {"serve", "--ephemeral", "-h"}, "Usage: kaas serve"}),
    [](const auto& info) { return std::string(info.param.what); });

class CommandLineRefuses : public ::testing::TestWithParam<Shown> {};

TEST_P(CommandLineRefuses, AndSaysHowToMendIt) {
    auto command = parse_command_line(GetParam().arguments);
    const auto* wrong = std::get_if<WrongCommand>(&command);
    ASSERT_NE(wrong, nullptr);
    EXPECT_THAT(wrong->text, HasSubstr(GetParam().text));
    EXPECT_TRUE(wrong->text.ends_with('\n'));
}

INSTANTIATE_TEST_SUITE_P(
    All, CommandLineRefuses,
    ::testing::Values(
        Shown{"NoCommand", {}, "Usage: kaas COMMAND"},
        Shown{"MisspeltCommand", {"srve"}, "'srve' is not a command; did you mean serve?"},
        Shown{"UnknownCommand", {"frobnicate"}, "'frobnicate' is not a command\n"},
        Shown{"MisspeltOption", {"serve", "--overide", "a=1"}, "did you mean --override?"},
        Shown{"WordBehindTheCommand", {"serve", "now"}, "'now' is not a command"},
        Shown{"WordBehindAnOverride", {"serve", "--override", "a=1", "b=2"}, "'b=2' is not"},
        Shown{"OptionWithoutItsValue", {"serve", "--config"}, "--config"},
        Shown{"LogWithoutItsVerb", {"log"}, "Usage: kaas log dump"},
        Shown{"ClusterWithoutItsVerb", {"cluster"}, "Usage: kaas cluster status"},
        Shown{"StatusOfNothing", {"cluster", "status"}, "cluster status needs a directory"},
        Shown{"VolumeWithoutItsVerb", {"volume"}, "Usage: kaas volume check"},
        Shown{"CheckOfNoVolume", {"volume", "check"}, "volume check needs a directory"},
        Shown{"MisspeltVerb", {"log", "dmp"}, "'dmp' is not a command; did you mean dump?"},
        Shown{"DumpOfNothing", {"log", "dump"}, "needs a file or a directory"},
        Shown{"DumpInAnUnknownForm", {"log", "dump", "-o", "xml", "a"}, "xml"},
        Shown{"MisspeltOptionOfDump", {"log", "dump", "a", "--record"}, "did you mean --records?"},
        Shown{"HelpThatWasAskedFor", {"serve", "--nope"}, "Try: kaas serve --help"}),
    [](const auto& info) { return std::string(info.param.what); });

}  // namespace
}  // namespace kaas::bin
