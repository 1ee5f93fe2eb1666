#pragma once

#include "broker/call.h"
#include "wire/messages/alter_replica_log_dirs.h"

namespace kaas::broker {

/// Api 34: begins to move partitions to other directories of this broker; DescribeLogDirs tells how
/// far they are.
[[nodiscard]] wire::AlterReplicaLogDirsResponse alter_replica_log_dirs(
    const Call& call, const wire::AlterReplicaLogDirsRequest& request);

}  // namespace kaas::broker
