#pragma once

#include "bin/cli.h"

#include <cstdio>
#include <string>

namespace kaas::bin {

/// Writes what `kaas volume check` finds. False when a property is bad, or could not be proven;
/// `error` then says how many.
[[nodiscard]] bool check_volumes(const VolumeCheckCommand& command, std::FILE* out,
                                 std::string& error);

}  // namespace kaas::bin
