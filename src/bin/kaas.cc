// The kaas command.

#include "bin/cli.h"
#include "bin/cluster_status.h"
#include "bin/log_check.h"
#include "bin/log_dump.h"
#include "bin/serve.h"
#include "bin/volume_check.h"

#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <string>
#include <variant>

namespace kaas::bin {
namespace {

int run(const ServeCommand& command) { return serve(command); }

int run(const LogDumpCommand& command) {
    std::string error;
    if (dump_logs(command, stdout, error)) return kDone;
    fmt::print(stderr, "kaas: {}\n", error);
    return kFailed;
}

int run(const LogCheckCommand& command) {
    std::string error;
    if (check_logs(command, stdout, error)) return kDone;
    fmt::print(stderr, "kaas: {}\n", error);
    return kFailed;
}

int run(const VolumeCheckCommand& command) {
    std::string error;
    if (check_volumes(command, stdout, error)) return kDone;
    fmt::print(stderr, "kaas: {}\n", error);
    return kFailed;
}

int run(const ClusterStatusCommand& command) {
    std::string error;
    if (show_cluster_status(command, stdout, error)) return kDone;
    fmt::print(stderr, "kaas: {}\n", error);
    return kFailed;
}

int run(const ShowCommand& command) {
    fmt::print("{}", command.text);
    return kDone;
}

int run(const WrongCommand& command) {
    fmt::print(stderr, "{}", command.text);
    return kUsage;
}

}  // namespace
}  // namespace kaas::bin

int main(int argc, char** argv) {
    try {
        auto command = kaas::bin::parse_command_line({argv + 1, argv + argc});
        return std::visit([](const auto& wanted) { return kaas::bin::run(wanted); }, command);
    } catch (const std::exception& error) {
        fmt::print(stderr, "kaas: {}\n", error.what());
        return kaas::bin::kFailed;
    }
}
