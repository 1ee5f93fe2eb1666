#pragma once

#include "common/fd.h"

#include <string>
#include <string_view>

namespace kaas::bench {

/// "127.0.0.1:9092" (or "[::1]:9092"); numeric addresses only, so that no look-up is measured.
struct Address {
    std::string host;
    std::string port;
};
Address parse_address(std::string_view text);

/// A connected socket with TCP_NODELAY; ends the program with a message if it cannot be had.
Fd connect_to(const Address& address);

void send_all(const Fd& socket, std::string_view frame);
/// The next frame, without the size field. Blocks.
std::string receive_frame(const Fd& socket);

/// One blocking request and its answer, without the size field.
std::string call(const Fd& socket, std::string_view frame);

}  // namespace kaas::bench
