#pragma once

#include "broker/call.h"
#include "wire/messages/join_group.h"

namespace kaas::broker {

/// JoinGroup (11), answered by the coordinator of the group.
void join_group(CallPtr call, wire::JoinGroupRequest request);

}  // namespace kaas::broker
