#pragma once

#include "broker/call.h"
#include "wire/messages/offset_commit.h"

namespace kaas::broker {

/// OffsetCommit (8), answered by the coordinator of the group.
void offset_commit(CallPtr call, wire::OffsetCommitRequest request);

}  // namespace kaas::broker
