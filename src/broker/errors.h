#pragma once

#include "cluster/error.h"
#include "storage/error.h"
#include "wire/error_code.h"

/// Where the codes of our modules become Kafka's: once, here, at the handlers' edge (DESIGN 12).
namespace kaas::broker {

[[nodiscard]] wire::ErrorCode to_wire(storage::ErrorCode code);
[[nodiscard]] wire::ErrorCode to_wire(cluster::ErrorCode code);

}  // namespace kaas::broker
