#pragma once

#include "base/executor.h"
#include "base/unique_fd.h"
#include "net/connection.h"
#include "net/exchange.h"
#include "net/frame_memory.h"
#include "net/reactor.h"
#include "net/server_log.h"
#include "net/server_metrics.h"

#include <cstddef>
#include <deque>
#include <list>
#include <memory>
#include <string>

namespace kaas::net {

class Server;
struct Listener;
struct ServerOptions;

/// A server's part on one reactor: its connections, in order of their last activity, and the slab
/// they receive into. Thread: the reactor's, except `expect_memory` and `memory_freed`.
class Shard {
public:
    using Connections = std::list<std::shared_ptr<Connection>>;

    Shard(Server& server, Reactor& reactor, const std::string& name);

    /// From reactor 0: takes over a connection that `limits` has admitted.
    void adopt(base::UniqueFd socket, Peer peer, const Listener& listener);
    void start_timer();
    void drain();
    void close_all();

    // For connections.
    void active(Connections::iterator connection);
    void ended(Connections::iterator connection, CloseReason reason);
    void gone(Connections::iterator connection);
    /// `again`: memory was freed, but not enough of it.
    void wait_for_memory(std::shared_ptr<Connection> connection, bool again);

    /// A request ended: what it held of a slab may be free.
    void request_ended();
    /// Any thread: memory came back.
    void memory_freed();

    [[nodiscard]] Reactor& reactor() { return reactor_; }
    [[nodiscard]] const ServerOptions& options() const;
    [[nodiscard]] RequestHandler& handler();
    [[nodiscard]] base::Executor& io_pool();
    [[nodiscard]] ServerLog& log();
    [[nodiscard]] SlabSource& slabs() { return slabs_; }
    [[nodiscard]] ReactorMetrics& metrics() { return metrics_; }

private:
    void on_second();
    void expire_idle();
    void feed();

    Server& server_;
    Reactor& reactor_;
    ReactorMetrics metrics_;
    SlabSource slabs_;
    Connections connections_;
    std::deque<std::weak_ptr<Connection>> hungry_;
    std::unique_ptr<ReactorTimer> second_;
    bool draining_ = false;
};

}  // namespace kaas::net
