#pragma once

#include "cluster/error.h"
#include "cluster/tenancy.h"
#include "storage/error.h"
#include "wire/error_code.h"

/// Where the codes of our modules become Kafka's: once, here, at the handlers' edge (DESIGN 12).
/// `coordinator` alone has none of its own: it answers in Kafka's.
namespace kaas::broker {

[[nodiscard]] wire::ErrorCode to_wire(storage::ErrorCode code);
[[nodiscard]] wire::ErrorCode to_wire(cluster::ErrorCode code);
/// What is said of a partition that this broker hosts so; NONE when it serves it.
[[nodiscard]] wire::ErrorCode to_wire(cluster::Hosting state);

}  // namespace kaas::broker
