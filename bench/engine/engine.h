#pragma once

#include "storage/error.h"
#include "storage/session_check.h"

#include <sys/resource.h>
#include <sys/time.h>

#include <stdexcept>
#include <type_traits>
#include <utility>

/// What benches share that measure the storage engine from within.
namespace kaas::bench {

/// A session that is never lost.
class NoSession final : public storage::SessionCheck {
public:
    storage::Result<void> confirm() override { return {}; }
};

/// The value; an error ends the bench.
template <class T>
T must(storage::Result<T> result) {
    if (!result) throw std::runtime_error(result.error().context);
    if constexpr (!std::is_void_v<T>) return std::move(*result);
}

/// Of the process (RUSAGE_SELF) or the calling thread (RUSAGE_THREAD).
[[nodiscard]] inline double cpu_seconds(int who) {
    rusage usage{};
    getrusage(who, &usage);
    const auto seconds = [](const timeval& time) {
        return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
    };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

}  // namespace kaas::bench
