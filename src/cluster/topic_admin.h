#pragma once

#include "cluster/admin.h"
#include "cluster/draft.h"
#include "cluster/error.h"

#include <vector>

/// What administrative requests about topics do to a draft, by Apache's rules and in its words
/// (`ReplicationControlManager` and `ControllerApis` of 4.4.0). Pure: no I/O, no threads. An error
/// of a whole request means that none of its topics was touched.
namespace kaas::cluster {

[[nodiscard]] Result<std::vector<CreatedTopic>> plan(const CreateTopics& request,
                                                     const ControllerConfig& config, Draft& draft);
[[nodiscard]] std::vector<DeletedTopic> plan(const DeleteTopics& request, Draft& draft);
[[nodiscard]] Result<std::vector<GrownTopic>> plan(const CreatePartitions& request, Draft& draft);
[[nodiscard]] Result<void> plan(const AlterConfigs& request, const ControllerConfig& config,
                                Draft& draft);

}  // namespace kaas::cluster
