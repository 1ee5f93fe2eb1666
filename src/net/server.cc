#include "net/server.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/executor.h"
#include "base/metrics.h"
#include "base/mutex.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "net/acceptor.h"
#include "net/error.h"
#include "net/exchange.h"
#include "net/memory_limit.h"
#include "net/reactor.h"
#include "net/shard.h"

#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace kaas::net {
namespace {

constexpr auto kUsedName = "kaas_request_memory_used_bytes";
constexpr auto kLimitName = "kaas_request_memory_limit_bytes";

base::metrics::Labels labels_of(const ServerOptions& options) {
    if (options.name.empty()) return {};
    return {{"server", options.name}};
}

}  // namespace

Server::Server(ServerOptions options, ReactorPool& reactors, RequestHandler& handler,
               base::Executor& io_pool, base::metrics::Registry& registry)
    : options_(std::move(options)),
      reactors_(reactors),
      handler_(handler),
      io_pool_(io_pool),
      registry_(registry),
      metrics_(registry),
      memory_(options_.request_memory_bytes > 0 ? options_.request_memory_bytes
                                                : default_request_memory_bytes(),
              [this] { memory_freed(); }),
      limits_(options_.connections, [this] { room_for_connections(); }) {
    std::signal(SIGPIPE, SIG_IGN);
    for (std::size_t i = 0; i < reactors_.size(); ++i) {
        shards_.push_back(
            std::make_unique<Shard>(*this, reactors_[i], options_.name + std::to_string(i)));
    }
    registry_.sampled(kUsedName, "Memory that requests in flight hold", labels_of(options_),
                      [this] { return static_cast<double>(memory_.used()); });
    registry_.sampled(kLimitName, "queued.max.request.bytes", labels_of(options_),
                      [this] { return static_cast<double>(memory_.limit()); });
    on_each_reactor(&Shard::start_timer);
}

Server::~Server() {
    stop(std::chrono::milliseconds(0));
    // What the I/O pool holds comes back by itself: its calls wait for no client.
    while (!wait_until_empty(std::chrono::seconds(1))) {
    }
    // The last connections may have posted for the server: wait until that has run.
    for (auto& shard : shards_) shard->reactor().run_and_wait([] {});
    registry_.remove(kUsedName, labels_of(options_));
    registry_.remove(kLimitName, labels_of(options_));
}

Result<std::uint16_t> Server::listen(ListenerOptions options) {
    KAAS_TRY_ASSIGN(socket, open_listener(options, options_));
    sockaddr_storage address{};
    socklen_t size = sizeof(address);
    KAAS_ASSERT(::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0);
    acceptors_.push_back(
        std::make_unique<Acceptor>(*this, reactors_[0], std::move(options), std::move(socket)));
    return port_of(address);
}

void Server::start() {
    reactors_[0].run_and_wait([this] {
        for (auto& acceptor : acceptors_) acceptor->start();
    });
}

void Server::stop(std::chrono::milliseconds patience) {
    reactors_[0].run_and_wait([this] {
        for (auto& acceptor : acceptors_) acceptor->stop();
    });
    on_each_reactor(&Shard::drain);
    if (!wait_until_empty(patience)) on_each_reactor(&Shard::close_all);
}

std::size_t Server::open_connections_for_test() const {
    base::MutexLock lock(mutex_);
    return open_;
}

void Server::deal(base::UniqueFd socket, Peer peer, const Listener& listener) {
    peer.connection_id = next_connection_id_++;
    Shard& shard = *shards_[peer.connection_id % shards_.size()];
    listener.metrics.connections.add();
    listener.metrics.open.add(1);
    {
        base::MutexLock lock(mutex_);
        ++open_;
    }
    shard.reactor().post(
        [&shard, &listener, socket = std::move(socket), peer = std::move(peer)]() mutable {
            shard.adopt(std::move(socket), std::move(peer), listener);
        });
}

void Server::connection_ended(const Peer& peer) {
    limits_.release(peer.address);
    base::MutexLock lock(mutex_);
    --open_;
    if (open_ == 0) ended_.notify_all();
}

void Server::memory_freed() {
    for (auto& shard : shards_) shard->memory_freed();
}

void Server::room_for_connections() {
    reactors_[0].post([this] {
        for (auto& acceptor : acceptors_) acceptor->resume();
    });
}

bool Server::wait_until_empty(std::chrono::milliseconds patience) {
    auto& clock = base::Clock::system();
    auto deadline = clock.now() + patience;
    base::MutexLock lock(mutex_);
    while (open_ > 0) {
        auto left = deadline - clock.now();
        if (left <= std::chrono::nanoseconds(0)) return false;
        ended_.wait_for(mutex_, left);
    }
    return true;
}

void Server::on_each_reactor(void (Shard::*call)()) {
    for (auto& shard : shards_) {
        shard->reactor().run_and_wait([&] { ((*shard).*call)(); });
    }
}

}  // namespace kaas::net
