#pragma once

#include "broker/call.h"
#include "wire/messages/delete_records.h"

namespace kaas::broker {

/// Api 21: moves the start of logs. Answers once every log has recorded its new start; those that
/// have not at `timeout_ms` (a second at least) with REQUEST_TIMED_OUT, though they may later.
void delete_records(CallPtr call, wire::DeleteRecordsRequest request);

}  // namespace kaas::broker
