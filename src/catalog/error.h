#pragma once

#include "base/result.h"

#include <string>
#include <utility>

namespace kaas::catalog {

/// What a reader of metadata can act on.
enum class ErrorCode {
    kMalformed,    ///< A line, picture or change that we never wrote like this; the context says
                   ///< where.
    kNewerFormat,  ///< Written by a later version of kaas: this one must not go on.
    kStorage,  ///< The control log could not be read or written; its epoch is over for its owner.
    kSuperseded,  ///< Another controller has closed this epoch of the control log.
};

using Error = base::Error<ErrorCode>;

template <class T>
using Result = base::Result<T, ErrorCode>;

[[nodiscard]] inline std::unexpected<Error> fail(ErrorCode code, std::string context) {
    return base::fail(code, std::move(context));
}

}  // namespace kaas::catalog
