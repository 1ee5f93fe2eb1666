#pragma once

#include "broker/call.h"
#include "wire/messages/offset_fetch.h"

namespace kaas::broker {

/// OffsetFetch (9), answered by the coordinator of the group, or of each.
void offset_fetch(CallPtr call, wire::OffsetFetchRequest request);

}  // namespace kaas::broker
