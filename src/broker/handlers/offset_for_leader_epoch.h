#pragma once

#include "broker/call.h"
#include "wire/messages/offset_for_leader_epoch.h"

namespace kaas::broker {

/// OffsetForLeaderEpoch (23): where the records of a leader epoch end, so that a client sees
/// whether its place in the log is still the same log (KIP-320). It goes back if not, so the answer
/// waits for a check of the session (DESIGN rule 7).
void offset_for_leader_epoch(CallPtr call, wire::OffsetForLeaderEpochRequest request);

}  // namespace kaas::broker
