#pragma once

#include "base/log_throttle.h"
#include "net/exchange.h"

#include <fmt/format.h>

#include <string>

namespace kaas::net {

/// The lines of a server that its clients can cause. Thread: any.
struct ServerLog {
    base::log::Throttle refused_connections;
    base::log::Throttle bad_lengths;
    base::log::Throttle closed_by_handler;
    base::log::Throttle dropped_requests;
    base::log::Throttle failed_files;
};

/// `address:port`, IPv6 in brackets.
[[nodiscard]] inline std::string to_string(const Peer& peer) {
    const bool ipv6 = peer.address.find(':') != std::string::npos;
    return fmt::format("{}{}{}:{}", ipv6 ? "[" : "", peer.address, ipv6 ? "]" : "", peer.port);
}

}  // namespace kaas::net
