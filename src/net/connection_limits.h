#pragma once

#include "base/mutex.h"

#include <cstddef>
#include <functional>
#include <limits>
#include <string>
#include <unordered_map>

namespace kaas::net {

struct ConnectionLimitOptions {
    std::size_t max = std::numeric_limits<std::int32_t>::max();  ///< `max.connections`
    std::size_t max_per_ip =
        std::numeric_limits<std::int32_t>::max();  ///< `max.connections.per.ip`
    std::unordered_map<std::string, std::size_t> per_ip_overrides =
        {};  ///< `max.connections.per.ip.overrides`
};

/// Counts the connections of a server against its limits. As in Apache, a full server leaves new
/// connections waiting in the kernel's backlog, and an address with too many has new ones closed.
/// Thread: any.
class ConnectionLimits {
public:
    /// `on_room` runs, on the releasing thread, when a connection ends after `full` said true.
    ConnectionLimits(ConnectionLimitOptions options, std::function<void()> on_room);

    [[nodiscard]] bool full() KAAS_EXCLUDES(mutex_);
    /// Counts one connection from `address`, or says that the address has too many.
    [[nodiscard]] bool admit(const std::string& address) KAAS_EXCLUDES(mutex_);
    void release(const std::string& address) KAAS_EXCLUDES(mutex_);

private:
    const ConnectionLimitOptions options_;
    const std::function<void()> on_room_;
    base::Mutex mutex_;
    std::size_t open_ KAAS_GUARDED_BY(mutex_) = 0;
    bool told_full_ KAAS_GUARDED_BY(mutex_) = false;
    std::unordered_map<std::string, std::size_t> per_ip_ KAAS_GUARDED_BY(mutex_);
};

}  // namespace kaas::net
