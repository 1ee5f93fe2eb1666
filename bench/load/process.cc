#include "load/process.h"

#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>

namespace kaas::bench {
namespace {

int64_t clock_ns(clockid_t clock) {
    timespec time{};
    if (clock_gettime(clock, &time) != 0) return 0;
    return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

}  // namespace

int64_t now_ns() { return clock_ns(CLOCK_MONOTONIC); }

ProcessUse process_use(pid_t pid) {
    ProcessUse use;
    if (pid == 0) return use;
    // The same sum as utime and stime of /proc/<pid>/stat, without its 10 ms steps.
    clockid_t clock{};
    if (clock_getcpuclockid(pid, &clock) == 0)
        use.cpu_s = static_cast<double>(clock_ns(clock)) / 1e9;
    std::ifstream status("/proc/" + std::to_string(pid) + "/status");
    for (std::string line; std::getline(status, line);) {
        std::istringstream fields(line);
        std::string name;
        double kilobytes = 0;
        fields >> name >> kilobytes;
        if (name == "VmRSS:") use.rss_mb = kilobytes * 1024 / 1e6;
        if (name == "VmHWM:") use.rss_peak_mb = kilobytes * 1024 / 1e6;
    }
    return use;
}

double machine_cpu_s() {
    std::ifstream stat("/proc/stat");
    std::string cpu;
    double user = 0, nice = 0, system = 0, idle = 0, iowait = 0, irq = 0, softirq = 0;
    stat >> cpu >> user >> nice >> system >> idle >> iowait >> irq >> softirq;
    return (user + nice + system + irq + softirq) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

double own_cpu_s() { return static_cast<double>(clock_ns(CLOCK_PROCESS_CPUTIME_ID)) / 1e9; }

}  // namespace kaas::bench
