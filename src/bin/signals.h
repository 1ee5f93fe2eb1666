#pragma once

#include "base/mutex.h"

#include <string>

namespace kaas::bin {

/// Why a broker's main thread woke up.
struct WakeUp {
    bool lost = false;  ///< the broker cannot go on; otherwise somebody asked it to stop
    std::string why;
};

/// Turns signals into a wait of the main thread.
///
/// Made before the process starts any thread, so that all threads inherit the blocked signals.
/// SIGTERM and SIGINT ask for a stop; SIGPIPE, SIGHUP and SIGXFSZ mean nothing.
class Signals {
public:
    Signals();

    /// Main thread: until a signal comes or `lose` is called. SIGINT and SIGTERM are deadly from
    /// then on: a second one does not wait for the end of a drain.
    [[nodiscard]] WakeUp wait() KAAS_EXCLUDES(mutex_);
    /// Any thread: wakes the main thread; the first reason counts.
    void lose(const std::string& why) KAAS_EXCLUDES(mutex_);

private:
    base::Mutex mutex_;
    bool lost_ KAAS_GUARDED_BY(mutex_) = false;
    std::string why_ KAAS_GUARDED_BY(mutex_);
};

}  // namespace kaas::bin
