#pragma once

#include "base/metrics.h"

#include <array>
#include <cstddef>
#include <string>

namespace kaas::net {

/// Why a connection ended; the label of `kaas_connections_closed_total`.
enum class CloseReason {
    kPeer,      ///< the client closed it
    kBroken,    ///< reset, or another error of the socket
    kIdle,      ///< `connections.max.idle.ms`
    kBadFrame,  ///< a length below zero or above `socket.request.max.bytes`
    kHandler,   ///< the handler asked for it
    kDropped,   ///< the handler dropped a request without an answer
    kFile,      ///< a file region of an answer could not be read
    kStopping,  ///< the server stops
};
inline constexpr std::size_t kCloseReasons = 8;
[[nodiscard]] const char* close_reason_name(CloseReason reason);

/// Of a whole server.
struct ServerMetrics {
    explicit ServerMetrics(base::metrics::Registry& registry);

    std::array<base::metrics::Counter*, kCloseReasons> closed;
    base::metrics::Counter& refused_per_ip;
    base::metrics::Counter& accept_errors;
    base::metrics::Counter&
        memory_waits;  ///< a connection stopped reading for want of request memory
};

/// Of one listener.
struct ListenerMetrics {
    ListenerMetrics(base::metrics::Registry& registry, const std::string& listener);

    base::metrics::Counter& connections;
    base::metrics::Gauge& open;
};

/// Of one reactor: counted there without sharing a cache line with the others.
struct ReactorMetrics {
    ReactorMetrics(base::metrics::Registry& registry, const std::string& reactor);

    base::metrics::Counter& frames;
    base::metrics::Counter& received_bytes;
    base::metrics::Counter&
        moved_bytes;                   ///< received, then copied: 0 but for surprising large frames
    base::metrics::Counter& receives;  ///< system calls
    base::metrics::Counter& sends;
    base::metrics::Counter& sent_text_bytes;
    base::metrics::Counter& sent_file_bytes;    ///< by sendfile on the reactor
    base::metrics::Counter& sent_pool_bytes;    ///< by sendfile on the I/O pool
    base::metrics::Counter& sent_copied_bytes;  ///< of files, through user memory
};

}  // namespace kaas::net
