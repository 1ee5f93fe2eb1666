#pragma once

#include "broker/call.h"
#include "wire/messages/elect_leaders.h"

namespace kaas::broker {

/// ElectLeaders (43, KIP-460): asks leaders for partitions that others are preferred for.
void elect_leaders(CallPtr call, wire::ElectLeadersRequest request);

}  // namespace kaas::broker
