#pragma once

#include "base/ids.h"
#include "catalog/image.h"
#include "cluster/admin.h"
#include "cluster/draft.h"
#include "cluster/error.h"

#include <cstddef>
#include <optional>
#include <vector>

/// What administrative requests about topics do to a draft, by Apache's rules and in its words
/// (`ReplicationControlManager` and `ControllerApis` of 4.4.0). Pure: no I/O, no threads. An error
/// of a whole request means that none of its topics was touched.
namespace kaas::cluster {

/// Whether replicas that somebody has named can be a partition's: `factor` of them, if given.
[[nodiscard]] Result<void> check_replicas(const std::vector<base::BrokerId>& brokers,
                                          std::optional<std::size_t> factor,
                                          const catalog::Image& image);

[[nodiscard]] Result<std::vector<CreatedTopic>> plan(const CreateTopics& request,
                                                     const ControllerConfig& config, Draft& draft);
[[nodiscard]] std::vector<DeletedTopic> plan(const DeleteTopics& request, Draft& draft);
[[nodiscard]] Result<std::vector<GrownTopic>> plan(const CreatePartitions& request, Draft& draft);
[[nodiscard]] Result<void> plan(const AlterConfigs& request, const ControllerConfig& config,
                                Draft& draft);

}  // namespace kaas::cluster
