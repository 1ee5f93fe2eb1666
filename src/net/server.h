#pragma once

#include "base/executor.h"
#include "base/metrics.h"
#include "base/mutex.h"
#include "net/connection_limits.h"
#include "net/error.h"
#include "net/exchange.h"
#include "net/frame_memory.h"
#include "net/reactor.h"
#include "net/server_log.h"
#include "net/server_metrics.h"
#include "net/stream.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace kaas::net {

class Acceptor;
class Shard;
struct Listener;

struct ListenerOptions {
    std::string name = "PLAINTEXT";               ///< as in `listeners`
    std::string security_protocol = "PLAINTEXT";  ///< of `listener.security.protocol.map`
    std::string host = {};      ///< a name or an address; empty for all, IPv6 and IPv4
    std::uint16_t port = 0;     ///< 0: the system chooses
    StreamFactory stream = {};  ///< empty: plain text
};

/// Of Apache's `SocketServerConfigs`, with its defaults.
struct ServerOptions {
    ConnectionLimitOptions connections = {};
    std::chrono::milliseconds idle_max =
        std::chrono::minutes(10);                 ///< `connections.max.idle.ms`; < 0: never
    std::uint32_t request_max_bytes = 100 << 20;  ///< `socket.request.max.bytes`
    std::int32_t send_buffer_bytes = 100 << 10;   ///< `socket.send.buffer.bytes`; -1: the system's
    std::int32_t receive_buffer_bytes = 100 << 10;  ///< `socket.receive.buffer.bytes`
    std::int32_t listen_backlog = 50;               ///< `socket.listen.backlog.size`
    std::size_t request_memory_bytes = 0;  ///< `queued.max.request.bytes`; 0: a quarter of memory
    /// Tells a second server of a process from the first, in metrics.
    std::string name = {};
};

/// Listens, and brings requests to the handler and answers back.
///
/// Owns listeners and connections. The reactors, the handler, the I/O pool and the registry outlive
/// it; all exchanges and frames must be dead before it is destroyed. SIGPIPE is ignored from the
/// first server on: sendfile(2) knows no MSG_NOSIGNAL. Thread: any but a reactor's; one at a time.
class Server {
public:
    Server(ServerOptions options, ReactorPool& reactors, RequestHandler& handler,
           base::Executor& io_pool, base::metrics::Registry& registry);
    /// `stop`s without patience.
    ~Server();
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;

    /// Binds; gives the bound port. Connections wait in the backlog until `start`.
    [[nodiscard]] Result<std::uint16_t> listen(ListenerOptions options);
    /// Accepts on all listeners.
    void start();
    /// Stops accepting and reading, lets open exchanges end for at most `patience`, closes what is
    /// left. A connection whose socket the I/O pool holds is counted as open until it comes back;
    /// the destructor waits for that, `stop` does not. May be called twice.
    void stop(std::chrono::milliseconds patience) KAAS_EXCLUDES(mutex_);

    [[nodiscard]] const FrameMemory& request_memory_for_test() const { return memory_; }
    [[nodiscard]] std::size_t open_connections_for_test() const KAAS_EXCLUDES(mutex_);

private:
    friend class Shard;
    friend class Acceptor;

    void deal(base::UniqueFd socket, Peer peer, const Listener& listener);
    void connection_ended(const Peer& peer) KAAS_EXCLUDES(mutex_);
    void memory_freed();
    void room_for_connections();
    [[nodiscard]] bool wait_until_empty(std::chrono::milliseconds patience) KAAS_EXCLUDES(mutex_);
    void on_each_reactor(void (Shard::*call)());

    const ServerOptions options_;
    ReactorPool& reactors_;
    RequestHandler& handler_;
    base::Executor& io_pool_;
    base::metrics::Registry& registry_;
    ServerMetrics metrics_;
    ServerLog log_;
    FrameMemory memory_;
    ConnectionLimits limits_;
    std::vector<std::unique_ptr<Shard>> shards_;
    std::vector<std::unique_ptr<Acceptor>> acceptors_;
    std::uint64_t next_connection_id_ = 1;  ///< reactor 0 only

    mutable base::Mutex mutex_;
    base::CondVar ended_;
    std::size_t open_ KAAS_GUARDED_BY(mutex_) = 0;
};

}  // namespace kaas::net
