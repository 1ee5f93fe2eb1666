#pragma once

#include "base/result.h"

#include <cstdint>
#include <string>
#include <utility>

namespace kaas::client {

/// How a call, or the connection under it, ended.
enum class ErrorCode : std::uint8_t {
    kRefused,      ///< nobody listens there: the host answered, its process is gone
    kUnreachable,  ///< the host does not resolve, has no route, or did not answer in time
    kDown,         ///< closed: by the peer, by an error of the socket, or by our own end
    kTimedOut,     ///< the call's patience is over; whether it was carried out is unknown
    kDenied,       ///< the peer does not take our credentials
    kMalformed,    ///< an answer that no broker gives, or a request that the version cannot carry
};

using Error = base::Error<ErrorCode>;

template <class T>
using Result = base::Result<T, ErrorCode>;

[[nodiscard]] inline std::unexpected<Error> fail(ErrorCode code, std::string context) {
    return base::fail(code, std::move(context));
}

}  // namespace kaas::client
