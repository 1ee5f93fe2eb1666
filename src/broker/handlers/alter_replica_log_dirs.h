#pragma once

#include "broker/call.h"
#include "wire/messages/alter_replica_log_dirs.h"

namespace kaas::broker {

/// Api 34: begins to move partitions to other directories of this broker; DescribeLogDirs tells how
/// far they are. Asks the volumes whether they have room, on the I/O pool.
void alter_replica_log_dirs(CallPtr call, wire::AlterReplicaLogDirsRequest request);

}  // namespace kaas::broker
