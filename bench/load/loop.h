#pragma once

#include "load/connection.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace kaas::bench {

/// How a workload is driven.
struct Plan {
    double warmup_s = 1;
    double seconds = 4;
    size_t in_flight = 5;   // per connection, closed loop
    double rate = 0;        // requests a second over the paced connections, 0: closed loop
    size_t paced = 0;       // the first so many connections are paced
    uint64_t requests = 0;  // stop after so many, instead of by time
    pid_t broker = 0;       // whose CPU and memory are measured
};

/// What was measured between the end of the warm-up and the end.
struct Measured {
    double seconds = 0;
    Counters counters;
    double broker_cpu_s = 0;
    double broker_rss_mb = 0;
    double broker_rss_peak_mb = 0;
    double own_cpu_s = 0;
    double other_cpu_s = 0;  // of everybody else on the machine: noise, if it is not small
};

/// Drives the connections with one epoll loop. A paced request counts from the moment it was due,
/// so that a stall is not hidden by not asking. Ends with nothing in flight.
Measured drive(std::vector<std::unique_ptr<Connection>>& connections, Workload& workload,
               const Plan& plan);

}  // namespace kaas::bench
