#pragma once

#include "client/error.h"

#include <sys/socket.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kaas::client {

/// One address to connect to.
struct Address {
    sockaddr_storage socket_address;
    socklen_t size;
};

/// The address that `host` spells out, or nothing when it is a name. Asks nobody.
[[nodiscard]] std::optional<Address> numeric_address(const std::string& host, std::uint16_t port);

/// All addresses of a name, in the system's order. Blocks, for as long as the resolver likes: not
/// on a reactor. Errors: kUnreachable.
[[nodiscard]] Result<std::vector<Address>> resolve(const std::string& host, std::uint16_t port);

}  // namespace kaas::client
