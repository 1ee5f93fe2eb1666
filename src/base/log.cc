#include "base/log.h"

#include "base/clock.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace kaas::base::log {
namespace {

constexpr std::array<std::string_view, 5> kNames = {"trace", "debug", "info", "warn", "error"};

std::string_view name_of(Level level) { return kNames[static_cast<std::size_t>(level)]; }

spdlog::level::level_enum to_spdlog(Level level) {
    switch (level) {
        case Level::kTrace: return spdlog::level::trace;
        case Level::kDebug: return spdlog::level::debug;
        case Level::kInfo: return spdlog::level::info;
        case Level::kWarn: return spdlog::level::warn;
        case Level::kError: return spdlog::level::err;
    }
    return spdlog::level::err;
}

struct State {
    State() : logger("kaas", std::make_shared<spdlog::sinks::stderr_color_sink_mt>()) {
        logger.set_level(spdlog::level::trace);  // `enabled` decides
        set_pattern(Format::kText);
        logger.flush_on(spdlog::level::trace);
    }
    void set_pattern(Format wanted) {
        format.store(wanted);
        logger.set_pattern(wanted == Format::kText ? "%Y-%m-%d %H:%M:%S.%e %^%-5l%$ %v" : "%v");
    }

    spdlog::logger logger;
    std::atomic<Level> level = Level::kInfo;
    std::atomic<Format> format = Format::kText;
};

State& state() {
    static State instance;
    return instance;
}

std::string utc_timestamp() {
    std::int64_t ms = Clock::system().wall_ms();
    std::time_t seconds = ms / 1000;
    return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(seconds), ms % 1000);
}

/// As a JSON string has it; with `in_quotes` false only what would end the line or move the cursor.
void append_escaped(std::string& out, std::string_view text, bool in_quotes) {
    for (char c : text) {
        switch (c) {
            case '"': out += in_quotes ? "\\\"" : "\""; break;
            case '\\': out += in_quotes ? "\\\\" : "\\"; break;
            case '\n': out += "\\n"; break;
            case '\r': out += "\\r"; break;
            case '\t': out += "\\t"; break;
            default:
                if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
                    out += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
                } else {
                    out.push_back(c);
                }
        }
    }
}

}  // namespace

void configure(const Options& options) {
    state().level.store(options.level);
    state().set_pattern(options.format);
}

std::optional<Level> parse_level(std::string_view name) {
    for (std::size_t i = 0; i < kNames.size(); ++i) {
        if (kNames[i] == name) return static_cast<Level>(i);
    }
    return std::nullopt;
}

bool enabled(Level level) { return level >= state().level.load(std::memory_order_relaxed); }

void write(Level level, std::string_view target, const std::string& message) {
    if (state().format.load(std::memory_order_relaxed) == Format::kJson) {
        state().logger.log(to_spdlog(level), "{}",
                           to_json(utc_timestamp(), level, target, message));
    } else {
        state().logger.log(to_spdlog(level), "{}", to_text(target, message));
    }
}

std::string to_text(std::string_view target, std::string_view message) {
    std::string out(target);
    out += ": ";
    append_escaped(out, message, false);
    return out;
}

std::string to_json(std::string_view timestamp, Level level, std::string_view target,
                    std::string_view message) {
    std::string out =
        fmt::format(R"({{"timestamp":"{}","level":"{}","target":")", timestamp, name_of(level));
    append_escaped(out, target, true);
    out += R"(","fields":{"message":")";
    append_escaped(out, message, true);
    out += "\"}}";
    return out;
}

}  // namespace kaas::base::log
