#pragma once

#include "bin/cli.h"

#include <cstdio>
#include <string>

namespace kaas::bin {

/// Writes what `kaas cluster status` tells. False when it cannot be read; `error` then says why.
[[nodiscard]] bool show_cluster_status(const ClusterStatusCommand& command, std::FILE* out,
                                       std::string& error);

}  // namespace kaas::bin
