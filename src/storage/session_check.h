#pragma once

#include "storage/error.h"

namespace kaas::storage {

/// Proves that this incarnation was still unfenced at a moment after the call began (DESIGN 9).
/// Storage asks; `cluster::Session` answers. Thread: any that may block.
class SessionCheck {
public:
    virtual ~SessionCheck() = default;
    /// Errors: kFenced, for ever; kIo, which proves nothing: do not acknowledge.
    [[nodiscard]] virtual Result<void> confirm() = 0;
};

}  // namespace kaas::storage
