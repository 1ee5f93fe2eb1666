#pragma once

#include "base/unique_fd.h"

#include <gtest/gtest.h>

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>

namespace kaas::client {

/// A port at which nobody listens, and nobody else will while this lives.
class DeadPort {
public:
    DeadPort() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof(address);
        auto* generic = reinterpret_cast<sockaddr*>(&address);
        EXPECT_EQ(::bind(socket_.get(), generic, size), 0);
        EXPECT_EQ(::getsockname(socket_.get(), generic, &size), 0);
        port_ = ntohs(address.sin_port);
    }
    [[nodiscard]] std::uint16_t port() const { return port_; }

private:
    base::UniqueFd socket_;
    std::uint16_t port_ = 0;
};

}  // namespace kaas::client
