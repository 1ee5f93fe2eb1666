#pragma once

#include "broker/call.h"
#include "wire/messages/list_offsets.h"

namespace kaas::broker {

/// ListOffsets (2): where a partition begins (-2, -4) and ends (-1), the first record of a time,
/// and the record of the largest time (-3, KIP-734). -5 and -6 ask for tiered storage, which is not
/// there: no offset, no error (KIP-1005, KIP-1023).
void list_offsets(CallPtr call, wire::ListOffsetsRequest request);

}  // namespace kaas::broker
