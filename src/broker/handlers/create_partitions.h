#pragma once

#include "broker/call.h"
#include "wire/messages/create_partitions.h"

namespace kaas::broker {

/// CreatePartitions (37, KIP-195): grows topics to a new total. A topic named twice is refused.
void create_partitions(CallPtr call, wire::CreatePartitionsRequest request);

}  // namespace kaas::broker
