#pragma once

#include "base/result.h"

#include <string>
#include <utility>

namespace kaas::telemetry {

/// What a caller of telemetry can act on.
enum class ErrorCode {
    kAddressInUse,  ///< somebody else listens there: in standalone a warning
    kBadAddress,    ///< no address of this machine
    kSystem,        ///< any other failed call; the context names it
};

using Error = base::Error<ErrorCode>;

template <class T>
using Result = base::Result<T, ErrorCode>;

[[nodiscard]] inline std::unexpected<Error> fail(ErrorCode code, std::string context) {
    return base::fail(code, std::move(context));
}

}  // namespace kaas::telemetry
