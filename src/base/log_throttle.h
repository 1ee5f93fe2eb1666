#pragma once

#include "base/clock.h"
#include "base/log.h"
#include "base/mutex.h"

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

namespace kaas::base::log {

/// For lines that a stranger can cause, and so as often as he likes: a few a second pass, the rest
/// is counted, and the next line that passes says how many were left out. One for each kind of
/// line. Thread: any.
class Throttle {
public:
    static constexpr int kLinesPerSecond = 5;

    explicit Throttle(const Clock& clock = Clock::system()) : clock_(clock) {}

    template <class... Args>
    void log(Level level, std::string_view target, fmt::format_string<Args...> text,
             Args&&... args) {
        if (!enabled(level)) return;
        const auto left_out = admit();
        if (!left_out) return;
        auto line = fmt::format(text, std::forward<Args>(args)...);
        if (*left_out > 0) line += fmt::format(" ({} like it were not logged)", *left_out);
        write(level, target, line);
    }

    /// Empty when the line is to be left out, else how many were before it.
    [[nodiscard]] std::optional<std::uint64_t> admit() KAAS_EXCLUDES(mutex_);

private:
    const Clock& clock_;
    Mutex mutex_;
    Clock::Steady second_ KAAS_GUARDED_BY(mutex_){};  ///< when the running second began
    int lines_ KAAS_GUARDED_BY(mutex_) = kLinesPerSecond;
    std::uint64_t left_out_ KAAS_GUARDED_BY(mutex_) = 0;
};

}  // namespace kaas::base::log
