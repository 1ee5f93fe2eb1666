#pragma once

#include "cluster/error.h"

#include <functional>

namespace kaas::bin {

/// Does `work` in a child of this process, and gives what came of it. This process must have one
/// thread. Errors: of `work`; kStorage when there is no child to be had, or it dies.
[[nodiscard]] cluster::Result<void> in_other_process(
    const std::function<cluster::Result<void>()>& work);

}  // namespace kaas::bin
