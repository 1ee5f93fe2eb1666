#pragma once

#include "broker/call.h"
#include "wire/messages/list_groups.h"

namespace kaas::broker {

/// ListGroups (16), answered by the coordinators that this broker has.
void list_groups(CallPtr call, wire::ListGroupsRequest request);

}  // namespace kaas::broker
