#pragma once

#include "broker/call.h"
#include "wire/messages/describe_log_dirs.h"

namespace kaas::broker {

/// Api 35: what lies in each directory of this broker, and how full it is. Asks the volumes, on the
/// I/O pool.
void describe_log_dirs(CallPtr call, wire::DescribeLogDirsRequest request);

}  // namespace kaas::broker
