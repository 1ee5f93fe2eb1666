#include "net/server_metrics.h"

#include "base/metrics.h"

#include <array>
#include <cstddef>
#include <string>

namespace kaas::net {
namespace {

base::metrics::Counter& sent_bytes(base::metrics::Registry& registry, const std::string& reactor,
                                   const char* path) {
    return registry.counter("kaas_network_sent_bytes_total",
                            "Bytes sent to clients, by the way that they took",
                            {{"reactor", reactor}, {"path", path}});
}

base::metrics::Counter& calls(base::metrics::Registry& registry, const std::string& reactor,
                              const char* call) {
    return registry.counter("kaas_network_calls_total",
                            "System calls that move bytes of connections",
                            {{"reactor", reactor}, {"call", call}});
}

}  // namespace

const char* close_reason_name(CloseReason reason) {
    switch (reason) {
        case CloseReason::kPeer: return "peer";
        case CloseReason::kBroken: return "broken";
        case CloseReason::kIdle: return "idle";
        case CloseReason::kBadFrame: return "bad_frame";
        case CloseReason::kHandler: return "handler";
        case CloseReason::kDropped: return "dropped";
        case CloseReason::kFile: return "file";
        case CloseReason::kStopping: return "stopping";
    }
    return "";
}

ServerMetrics::ServerMetrics(base::metrics::Registry& registry)
    : refused_per_ip(
          registry.counter("kaas_connections_refused_total",
                           "Connections closed at once, because their address had too many")),
      accept_errors(registry.counter("kaas_connections_accept_errors_total",
                                     "Failed accepts, after which the acceptor paused")),
      memory_waits(
          registry.counter("kaas_request_memory_waits_total",
                           "Times a connection stopped reading for want of request memory")) {
    for (std::size_t i = 0; i < kCloseReasons; ++i) {
        closed[i] =
            &registry.counter("kaas_connections_closed_total", "Connections ended, by reason",
                              {{"reason", close_reason_name(static_cast<CloseReason>(i))}});
    }
}

ListenerMetrics::ListenerMetrics(base::metrics::Registry& registry, const std::string& listener)
    : connections(registry.counter("kaas_connections_total", "Connections accepted",
                                   {{"listener", listener}})),
      open(registry.gauge("kaas_connections_open", "Connections open now",
                          {{"listener", listener}})) {}

ReactorMetrics::ReactorMetrics(base::metrics::Registry& registry, const std::string& reactor)
    : frames(registry.counter("kaas_network_frames_total", "Requests received",
                              {{"reactor", reactor}})),
      received_bytes(registry.counter("kaas_network_received_bytes_total",
                                      "Bytes received from clients", {{"reactor", reactor}})),
      moved_bytes(registry.counter("kaas_network_moved_bytes_total",
                                   "Received bytes that had to be moved within memory",
                                   {{"reactor", reactor}})),
      receives(calls(registry, reactor, "recv")),
      sends(calls(registry, reactor, "send")),
      sent_text_bytes(sent_bytes(registry, reactor, "memory")),
      sent_file_bytes(sent_bytes(registry, reactor, "sendfile")),
      sent_pool_bytes(sent_bytes(registry, reactor, "sendfile_pool")),
      sent_copied_bytes(sent_bytes(registry, reactor, "copy")) {}

}  // namespace kaas::net
