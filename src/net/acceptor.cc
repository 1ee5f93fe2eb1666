#include "net/acceptor.h"

#include "base/log.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "net/error.h"
#include "net/exchange.h"
#include "net/reactor.h"
#include "net/server.h"

#include <arpa/inet.h>
#include <asm-generic/socket.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

namespace kaas::net {
namespace {

void set_option(int socket, int level, int option, int value) {
    // A socket without such an option works, only less well.
    ::setsockopt(socket, level, option, &value, sizeof(value));
}

void set_buffer_sizes(int socket, const ServerOptions& options) {
    if (options.send_buffer_bytes > 0)
        set_option(socket, SOL_SOCKET, SO_SNDBUF, options.send_buffer_bytes);
    if (options.receive_buffer_bytes > 0) {
        set_option(socket, SOL_SOCKET, SO_RCVBUF, options.receive_buffer_bytes);
    }
}

struct AddressDeleter {
    void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, AddressDeleter>;

Result<Addresses> resolve(const std::string& host, std::uint16_t port) {
    addrinfo hints{};
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
    addrinfo* list = nullptr;
    int failed = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list);
    if (failed != 0) {
        return fail(ErrorCode::kBadAddress, fmt::format("{}: {}", host, ::gai_strerror(failed)));
    }
    return Addresses(list);
}

Result<base::UniqueFd> bind_and_listen(const sockaddr* address, socklen_t size,
                                       const std::string& text, const ServerOptions& options) {
    base::UniqueFd socket(
        ::socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!socket) return fail(ErrorCode::kSystem, fmt::format("socket: {}", std::strerror(errno)));
    set_option(socket.get(), SOL_SOCKET, SO_REUSEADDR, 1);
    // Before listen(2): the window scale of a connection is fixed by then.
    set_buffer_sizes(socket.get(), options);
    if (address->sa_family == AF_INET6) set_option(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, 0);
    if (::bind(socket.get(), address, size) != 0 ||
        ::listen(socket.get(), options.listen_backlog) != 0) {
        ErrorCode code = errno == EADDRINUSE      ? ErrorCode::kAddressInUse
                         : errno == EADDRNOTAVAIL ? ErrorCode::kBadAddress
                                                  : ErrorCode::kSystem;
        return fail(code, fmt::format("{}: {}", text, std::strerror(errno)));
    }
    return socket;
}

Result<base::UniqueFd> listen_everywhere(const ListenerOptions& listener,
                                         const ServerOptions& options) {
    sockaddr_in6 six{};
    six.sin6_family = AF_INET6;
    six.sin6_port = htons(listener.port);
    std::string text = fmt::format("*:{}", listener.port);
    auto both = bind_and_listen(reinterpret_cast<sockaddr*>(&six), sizeof(six), text, options);
    if (both || both.error().code == ErrorCode::kAddressInUse) return both;
    sockaddr_in four{};
    four.sin_family = AF_INET;
    four.sin_port = htons(listener.port);
    return bind_and_listen(reinterpret_cast<sockaddr*>(&four), sizeof(four), text, options);
}

}  // namespace

Result<base::UniqueFd> open_listener(const ListenerOptions& listener,
                                     const ServerOptions& options) {
    if (listener.host.empty()) return listen_everywhere(listener, options);
    KAAS_TRY_ASSIGN(addresses, resolve(listener.host, listener.port));
    // Java binds one address of a name and prefers IPv4 (`java.net.preferIPv6Addresses` is false).
    const addrinfo* chosen = addresses.get();
    for (const addrinfo* a = addresses.get(); a != nullptr; a = a->ai_next) {
        if (a->ai_family == AF_INET) {
            chosen = a;
            break;
        }
    }
    return bind_and_listen(chosen->ai_addr, chosen->ai_addrlen,
                           fmt::format("{}:{}", listener.host, listener.port), options);
}

std::uint16_t port_of(const sockaddr_storage& address) {
    if (address.ss_family == AF_INET6) {
        return ntohs(reinterpret_cast<const sockaddr_in6&>(address).sin6_port);
    }
    return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

std::string address_text(const sockaddr_storage& address) {
    std::array<char, INET6_ADDRSTRLEN> text{};
    if (address.ss_family == AF_INET) {
        ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in&>(address).sin_addr, text.data(),
                    text.size());
        return text.data();
    }
    const in6_addr& six = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
    if (IN6_IS_ADDR_V4MAPPED(&six)) {
        ::inet_ntop(AF_INET, &six.s6_addr[12], text.data(), text.size());
    } else {
        ::inet_ntop(AF_INET6, &six, text.data(), text.size());
    }
    return text.data();
}

Acceptor::Acceptor(Server& server, Reactor& reactor, ListenerOptions options, base::UniqueFd socket)
    : server_(server),
      reactor_(reactor),
      listener_{ListenerMetrics(server.registry_, options.name), std::move(options)},
      socket_(std::move(socket)) {}

void Acceptor::start() {
    pause_timer_ = std::make_unique<ReactorTimer>(reactor_);
    resume();
}

void Acceptor::stop() {
    pause();
    pause_timer_.reset();
    socket_.reset();
}

void Acceptor::resume() {
    if (watched_ || !socket_) return;
    if (auto watched = reactor_.watch(socket_.get(), EPOLLIN, *this); !watched) {
        base::log::error("net", "listener {}: {}", listener_.options.name, watched.error().context);
        pause_timer_->arm(kPause, [this] { resume(); });
        return;
    }
    watched_ = true;
}

void Acceptor::pause() {
    if (!watched_) return;
    watched_ = false;
    reactor_.unwatch(socket_.get());
}

void Acceptor::on_ready(std::uint32_t) {
    for (int left = kAcceptsPerTurn; watched_ && left > 0; --left) {
        if (server_.limits_.full()) return pause();  // Server::room_for_connections resumes
        if (!accept_one()) return;
    }
}

/// False when there is nothing more to accept now.
bool Acceptor::accept_one() {
    sockaddr_storage address{};
    socklen_t size = sizeof(address);
    base::UniqueFd socket(::accept4(socket_.get(), reinterpret_cast<sockaddr*>(&address), &size,
                                    SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket) {
        switch (errno) {
            case EAGAIN: return false;
            case EMFILE:
            case ENFILE:
            case ENOBUFS:
            case ENOMEM:
                // The client stays in the backlog, so the socket stays readable: trying on would
                // spin.
                server_.metrics_.accept_errors.add();
                if (!std::exchange(pausing_, true)) {
                    base::log::warn("net", "listener {} pauses: accept: {}", listener_.options.name,
                                    std::strerror(errno));
                }
                pause();
                pause_timer_->arm(kPause, [this] { resume(); });
                return false;
            default: return true;  // of that one connection (accept(2)): go on with the next
        }
    }
    pausing_ = false;
    std::string from = address_text(address);
    if (!server_.limits_.admit(from)) {
        server_.metrics_.refused_per_ip.add();
        server_.log_.refused_connections.log(base::log::Level::kInfo, "net",
                                             "a connection from {} was refused: it has too many",
                                             from);
        return true;
    }
    set_option(socket.get(), IPPROTO_TCP, TCP_NODELAY, 1);
    set_option(socket.get(), SOL_SOCKET, SO_KEEPALIVE, 1);
    Peer peer;
    peer.listener = listener_.options.name;
    peer.security_protocol = listener_.options.security_protocol;
    peer.address = std::move(from);
    peer.port = port_of(address);
    server_.deal(std::move(socket), std::move(peer), listener_);
    return true;
}

}  // namespace kaas::net
