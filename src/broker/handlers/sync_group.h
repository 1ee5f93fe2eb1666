#pragma once

#include "broker/call.h"
#include "wire/messages/sync_group.h"

namespace kaas::broker {

/// SyncGroup (14), answered by the coordinator of the group.
void sync_group(CallPtr call, wire::SyncGroupRequest request);

}  // namespace kaas::broker
