#pragma once

#include "broker/call.h"
#include "wire/messages/leave_group.h"

namespace kaas::broker {

/// LeaveGroup (13), answered by the coordinator of the group.
void leave_group(CallPtr call, wire::LeaveGroupRequest request);

}  // namespace kaas::broker
