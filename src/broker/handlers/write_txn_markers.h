#pragma once

#include "broker/call.h"
#include "wire/messages/write_txn_markers.h"

namespace kaas::broker {

/// WriteTxnMarkers (27): a transaction coordinator, or `kafka-transactions abort`, ends
/// transactions in partitions and groups that are led here. Answered when each marker is durable.
void write_txn_markers(CallPtr call, wire::WriteTxnMarkersRequest request);

}  // namespace kaas::broker
