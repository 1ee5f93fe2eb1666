#pragma once

#include "bin/cli.h"

#include <cstdio>
#include <string>

namespace kaas::bin {

/// Writes what `kaas log check` finds. False when something could not be read, is damaged, or is no
/// partition; `error` then says what.
[[nodiscard]] bool check_logs(const LogCheckCommand& command, std::FILE* out, std::string& error);

}  // namespace kaas::bin
