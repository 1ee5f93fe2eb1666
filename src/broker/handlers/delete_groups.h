#pragma once

#include "broker/call.h"
#include "wire/messages/delete_groups.h"

namespace kaas::broker {

/// DeleteGroups (42), answered by the coordinator of the group, each its own.
void delete_groups(CallPtr call, wire::DeleteGroupsRequest request);

}  // namespace kaas::broker
