#pragma once

#include <sys/types.h>

#include <cstdint>

namespace kaas::bench {

/// Nanoseconds of a clock that does not jump.
int64_t now_ns();

/// What a process has used so far. A pid of 0 reads as zeros.
struct ProcessUse {
    double cpu_s = 0;        // user and system, all threads, to the nanosecond
    double rss_mb = 0;       // VmRSS
    double rss_peak_mb = 0;  // VmHWM
};
ProcessUse process_use(pid_t pid);

/// CPU seconds of all processes of the machine (user, nice, system, interrupts; not idle, not
/// steal).
double machine_cpu_s();

/// CPU seconds of this process.
double own_cpu_s();

}  // namespace kaas::bench
