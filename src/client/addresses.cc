#include "client/addresses.h"

#include "client/error.h"

#include <fmt/format.h>

#include <netdb.h>
#include <sys/socket.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kaas::client {
namespace {

Result<std::vector<Address>> look_up(const std::string& host, std::uint16_t port, int flags) {
    addrinfo hints{};
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = flags | AI_NUMERICSERV;
    addrinfo* list = nullptr;
    if (int failed = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list);
        failed != 0) {
        return fail(ErrorCode::kUnreachable, fmt::format("{}: {}", host, ::gai_strerror(failed)));
    }
    std::unique_ptr<addrinfo, decltype([](addrinfo* it) { ::freeaddrinfo(it); })> owner(list);
    std::vector<Address> addresses;
    for (const addrinfo* it = list; it != nullptr; it = it->ai_next) {
        Address& address = addresses.emplace_back(Address{{}, it->ai_addrlen});
        std::memcpy(&address.socket_address, it->ai_addr, it->ai_addrlen);
    }
    return addresses;
}

}  // namespace

std::optional<Address> numeric_address(const std::string& host, std::uint16_t port) {
    auto found = look_up(host, port, AI_NUMERICHOST);
    if (!found || found->empty()) return std::nullopt;
    return found->front();
}

Result<std::vector<Address>> resolve(const std::string& host, std::uint16_t port) {
    return look_up(host, port, 0);
}

}  // namespace kaas::client
