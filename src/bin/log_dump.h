#pragma once

#include "bin/cli.h"

#include <cstdio>
#include <string>

namespace kaas::bin {

/// Writes what `kaas log dump` shows. False when something could not be read, or is damaged;
/// `error` then says what. The rest is shown all the same.
[[nodiscard]] bool dump_logs(const LogDumpCommand& command, std::FILE* out, std::string& error);

}  // namespace kaas::bin
