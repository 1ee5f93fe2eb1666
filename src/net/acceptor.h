#pragma once

#include "base/unique_fd.h"
#include "net/error.h"
#include "net/reactor.h"
#include "net/server.h"
#include "net/server_metrics.h"

#include <sys/socket.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

namespace kaas::net {

/// What a connection knows of where it came in.
struct Listener {
    ListenerMetrics metrics;
    ListenerOptions options;
};

/// Accepts on one listener and deals connections out.
///
/// A full server, or a process without descriptors or memory, leaves clients in the kernel's
/// backlog: the acceptor takes its socket out of epoll and comes back when there is room, or after
/// a pause. Thread: reactor 0, but for construction.
class Acceptor final : public Pollable {
public:
    Acceptor(Server& server, Reactor& reactor, ListenerOptions options, base::UniqueFd socket);

    void start();
    void stop();
    /// There may be room for connections again.
    void resume();
    void on_ready(std::uint32_t events) override;

private:
    static constexpr std::chrono::milliseconds kPause{100};
    static constexpr int kAcceptsPerTurn = 64;

    [[nodiscard]] bool accept_one();
    void pause();

    Server& server_;
    Reactor& reactor_;
    Listener listener_;
    base::UniqueFd socket_;
    std::unique_ptr<ReactorTimer> pause_timer_;
    bool pausing_ = false;  ///< said, and no connection has been accepted since
    bool watched_ = false;
};

/// A bound, listening, non-blocking socket; resolves a name, so it may block.
[[nodiscard]] Result<base::UniqueFd> open_listener(const ListenerOptions& listener,
                                                   const ServerOptions& options);
[[nodiscard]] std::uint16_t port_of(const sockaddr_storage& address);
/// Without port; an IPv4 address that came through an IPv6 socket is written as IPv4.
[[nodiscard]] std::string address_text(const sockaddr_storage& address);

}  // namespace kaas::net
