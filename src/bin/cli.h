#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace kaas::bin {

/// The exit codes of every command.
inline constexpr int kDone = 0;    ///< did what was asked; a broker stopped in good order
inline constexpr int kFailed = 1;  ///< could not start, or could not go on
inline constexpr int kUsage = 2;   ///< the command line or the configuration is wrong

struct ServeCommand {
    std::optional<std::string> config_file;
    std::vector<std::string> overrides;  ///< key=value, unchecked
    bool ephemeral = false;
};

struct LogDumpCommand {
    std::vector<std::string> paths;  ///< files or directories; at least one
    bool json = false;
    bool records = false;
};

struct LogCheckCommand {
    std::vector<std::string> paths;  ///< directories of partitions, or above; at least one
    bool json = false;
};

struct VolumeCheckCommand {
    std::vector<std::string> paths;  ///< directories; at least one
    bool json = false;
};

struct ClusterStatusCommand {
    std::vector<std::string> paths;  ///< volumes; at least one
    bool json = false;
};

/// The command is over once `text` is printed.
struct ShowCommand {
    std::string text;  ///< ends with a line end
};

struct WrongCommand {
    std::string text;  ///< what is wrong and how to mend it; ends with a line end
};

using Command = std::variant<ServeCommand, LogDumpCommand, LogCheckCommand, VolumeCheckCommand,
                             ClusterStatusCommand, ShowCommand, WrongCommand>;

/// What the arguments (without the program's name) ask for. Touches nothing.
[[nodiscard]] Command parse_command_line(std::vector<std::string> arguments);

}  // namespace kaas::bin
