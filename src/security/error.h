#pragma once

#include "base/result.h"

#include <cstdint>
#include <string>
#include <utility>

namespace kaas::security {

/// What a caller of security can act on.
enum class ErrorCode : std::uint8_t {
    kMalformed,      ///< a message that the mechanism does not have
    kDenied,         ///< wrong name, password, nonce or signature; the context is for our log only
    kOtherIdentity,  ///< authorization as somebody else was asked for
    kOutOfTurn,      ///< a message after the exchange has ended
    kStorage,        ///< the volume's: nothing is known
    kDamaged,        ///< what lies on the volume needs a person; the context says what to do
};

using Error = base::Error<ErrorCode>;

template <class T>
using Result = base::Result<T, ErrorCode>;

[[nodiscard]] inline std::unexpected<Error> fail(ErrorCode code, std::string context) {
    return base::fail(code, std::move(context));
}

}  // namespace kaas::security
