#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>

/// Structured logging. A line has a time, a level, a target (the module that speaks) and a message.
/// Thread: any; lines are written whole, to stderr.
namespace kaas::base::log {

enum class Level { kTrace, kDebug, kInfo, kWarn, kError };
/// Text is for people; JSON (`{"timestamp","level","target","fields":{"message"}}`) is for
/// collectors.
enum class Format { kText, kJson };

struct Options {
    Level level = Level::kInfo;
    Format format = Format::kText;
};

/// Takes effect at once for all threads.
void configure(const Options& options);
[[nodiscard]] std::optional<Level> parse_level(std::string_view name);
[[nodiscard]] bool enabled(Level level);
void write(Level level, std::string_view target, const std::string& message);

/// The text form of one line after its time and level; separate for tests, as the next.
[[nodiscard]] std::string to_text(std::string_view target, std::string_view message);
/// The JSON form of one line without its newline.
[[nodiscard]] std::string to_json(std::string_view timestamp, Level level, std::string_view target,
                                  std::string_view message);

template <class... Args>
void log(Level level, std::string_view target, fmt::format_string<Args...> text, Args&&... args) {
    if (enabled(level)) write(level, target, fmt::format(text, std::forward<Args>(args)...));
}
template <class... Args>
void debug(std::string_view target, fmt::format_string<Args...> text, Args&&... args) {
    log(Level::kDebug, target, text, std::forward<Args>(args)...);
}
template <class... Args>
void info(std::string_view target, fmt::format_string<Args...> text, Args&&... args) {
    log(Level::kInfo, target, text, std::forward<Args>(args)...);
}
template <class... Args>
void warn(std::string_view target, fmt::format_string<Args...> text, Args&&... args) {
    log(Level::kWarn, target, text, std::forward<Args>(args)...);
}
template <class... Args>
void error(std::string_view target, fmt::format_string<Args...> text, Args&&... args) {
    log(Level::kError, target, text, std::forward<Args>(args)...);
}

}  // namespace kaas::base::log
