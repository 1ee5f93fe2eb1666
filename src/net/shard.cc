#include "net/shard.h"

#include "base/executor.h"
#include "base/log.h"
#include "base/unique_fd.h"
#include "net/acceptor.h"
#include "net/connection.h"
#include "net/exchange.h"
#include "net/reactor.h"
#include "net/server.h"
#include "net/server_log.h"
#include "net/server_metrics.h"

#include <chrono>
#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <utility>

namespace kaas::net {

Shard::Shard(Server& server, Reactor& reactor, const std::string& name)
    : server_(server),
      reactor_(reactor),
      metrics_(server.registry_, name),
      slabs_(server.memory_) {}

const ServerOptions& Shard::options() const { return server_.options_; }
RequestHandler& Shard::handler() { return server_.handler_; }
base::Executor& Shard::io_pool() { return server_.io_pool_; }
ServerLog& Shard::log() { return server_.log_; }

void Shard::start_timer() {
    second_ = std::make_unique<ReactorTimer>(reactor_);
    second_->arm(std::chrono::seconds(1), [this] { on_second(); });
}

void Shard::adopt(base::UniqueFd socket, Peer peer, const Listener& listener) {
    auto connection =
        std::make_shared<Connection>(*this, listener, std::move(socket), std::move(peer));
    connection->place_ = connections_.insert(connections_.end(), connection);
    if (auto begun = connection->begin(); !begun) {
        base::log::warn("net", "a connection from {} was dropped: {}",
                        to_string(connection->peer()), begun.error().context);
        connection->close(CloseReason::kBroken);
    } else if (draining_) {
        connection->close(CloseReason::kStopping);
    }
}

void Shard::drain() {
    if (std::exchange(draining_, true)) return;
    second_.reset();
    for (auto& connection : connections_) connection->drain();
    handler().draining();
}

void Shard::close_all() {
    // `close` takes the connection out of the list.
    Connections all = connections_;
    for (auto& connection : all) connection->close(CloseReason::kStopping);
}

void Shard::active(Connections::iterator connection) {
    connections_.splice(connections_.end(), connections_, connection);
}

void Shard::ended(Connections::iterator connection, CloseReason reason) {
    Connection& it = **connection;
    server_.metrics_.closed[static_cast<std::size_t>(reason)]->add();
    it.listener().metrics.open.add(-1);
    base::log::debug("net", "connection {} from {} ended: {}", it.peer().connection_id,
                     to_string(it.peer()), close_reason_name(reason));
    server_.handler_.disconnected(it.peer());
}

void Shard::gone(Connections::iterator connection) {
    std::shared_ptr<Connection> last = std::move(*connection);
    connections_.erase(connection);
    server_.connection_ended(last->peer());
    reactor_.retire(std::move(last));
}

void Shard::wait_for_memory(std::shared_ptr<Connection> connection, bool again) {
    hungry_.push_back(connection);
    if (again) return;
    server_.metrics_.memory_waits.add();
    // At once, as one that has waited: the place beyond the limit may be free, and no release may
    // come.
    reactor_.post([this] { feed(); });
}

void Shard::request_ended() {
    if (!hungry_.empty()) reactor_.post([this] { feed(); });
}

void Shard::memory_freed() {
    reactor_.post([this] { feed(); });
}

/// First come, first served: who is refused again queues up in the same order.
void Shard::feed() {
    std::deque<std::weak_ptr<Connection>> waited;
    waited.swap(hungry_);
    for (auto& waiting : waited) {
        if (auto connection = waiting.lock()) connection->memory_freed();
    }
}

void Shard::on_second() {
    expire_idle();
    slabs_.trim();
    feed();
    second_->arm(std::chrono::seconds(1), [this] { on_second(); });
}

void Shard::expire_idle() {
    auto idle_max = options().idle_max;
    if (idle_max < std::chrono::milliseconds(0)) return;
    for (std::size_t left = connections_.size(); left > 0; --left) {
        auto oldest = connections_.begin();
        if ((*oldest)->last_active() + idle_max > reactor_.now()) return;
        if ((*oldest)->owes_answer()) {
            (*oldest)->note_active();
        } else {
            (*oldest)->close(CloseReason::kIdle);
        }
    }
}

}  // namespace kaas::net
