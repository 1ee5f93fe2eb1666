#pragma once

#include "bin/cli.h"

namespace kaas::bin {

/// Runs a broker until it is asked to stop; gives the exit code. Main thread, before any other is
/// started.
[[nodiscard]] int serve(const ServeCommand& command);

}  // namespace kaas::bin
