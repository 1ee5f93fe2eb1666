#include "load/socket.h"

#include "common/bytes.h"
#include "common/fd.h"

#include <netdb.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cstddef>
#include <string>
#include <string_view>

namespace kaas::bench {
namespace {

void read_fully(int fd, char* to, size_t count) {
    while (count > 0) {
        const auto got = recv(fd, to, count, 0);
        if (got == 0) fail("the broker closed the connection");
        if (got < 0) fail_errno("recv");
        to += got;
        count -= static_cast<size_t>(got);
    }
}

}  // namespace

Address parse_address(std::string_view text) {
    const auto colon = text.rfind(':');
    if (colon == std::string_view::npos) fail("address without a port: " + std::string(text));
    auto host = text.substr(0, colon);
    if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
    return {std::string(host), std::string(text.substr(colon + 1))};
}

Fd connect_to(const Address& address) {
    addrinfo hints{};
    hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    if (const int error = getaddrinfo(address.host.c_str(), address.port.c_str(), &hints, &found)) {
        fail(address.host + ": " + gai_strerror(error));
    }
    Fd fd(socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int result = connect(fd.get(), found->ai_addr, found->ai_addrlen);
    freeaddrinfo(found);
    if (result != 0) fail_errno("connect to port " + address.port);
    const int on = 1;
    setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
}

void send_all(const Fd& socket, std::string_view frame) {
    while (!frame.empty()) {
        const auto sent = send(socket.get(), frame.data(), frame.size(), MSG_NOSIGNAL);
        if (sent < 0) fail_errno("send");
        frame.remove_prefix(static_cast<size_t>(sent));
    }
}

std::string receive_frame(const Fd& socket) {
    char size_field[4];
    read_fully(socket.get(), size_field, sizeof size_field);
    const auto size = Reader({size_field, sizeof size_field}).i32();
    if (size < 4) fail("an answer of " + std::to_string(size) + " bytes");
    std::string answer(static_cast<size_t>(size), '\0');
    read_fully(socket.get(), answer.data(), answer.size());
    return answer;
}

std::string call(const Fd& socket, std::string_view frame) {
    send_all(socket, frame);
    return receive_frame(socket);
}

}  // namespace kaas::bench
