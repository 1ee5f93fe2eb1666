#pragma once

#include "broker/call.h"
#include "wire/messages/offset_delete.h"

namespace kaas::broker {

/// OffsetDelete (47), answered by the coordinator of the group.
void offset_delete(CallPtr call, wire::OffsetDeleteRequest request);

}  // namespace kaas::broker
