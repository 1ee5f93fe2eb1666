#pragma once

#include "base/result.h"

#include <string>
#include <utility>

namespace kaas::net {

/// What a caller of net can act on.
enum class ErrorCode {
    kAddressInUse,  ///< EADDRINUSE: somebody else listens there
    kBadAddress,    ///< the host does not resolve, or is not an address of this machine
    kSystem,        ///< any other failed call; the context names it and the errno text
};

using Error = base::Error<ErrorCode>;

template <class T>
using Result = base::Result<T, ErrorCode>;

[[nodiscard]] inline std::unexpected<Error> fail(ErrorCode code, std::string context) {
    return base::fail(code, std::move(context));
}

}  // namespace kaas::net
