#pragma once

#include "base/ids.h"
#include "catalog/control_log.h"
#include "catalog/image.h"
#include "cluster/election.h"
#include "cluster/error.h"
#include "storage/volume.h"

#include <memory>
#include <optional>
#include <string>

namespace kaas::cluster {

/// All that a controller needs before its first act.
struct Reign {
    std::unique_ptr<ElectedEpoch> session;
    catalog::ControlLog log;
    catalog::ImagePtr image;
};

/// Makes the directories of a volume, where they are missing. Errors: kStorage.
[[nodiscard]] Result<void> prepare_volume(storage::Volume& volume);
/// Makes the directories of a cluster, where they are missing. Errors: kStorage.
[[nodiscard]] Result<void> prepare_cluster(storage::Volume& volume);

/// Whether a control log that is not there is a new cluster, or a loss.
enum class Founding { kAllowed, kRefused };

/// Takes office (DESIGN 10): makes the next election epoch, ends every lower one, reads the last
/// control log to its end, writes its own picture, checks. A volume without a control log becomes a
/// new cluster, of id `cluster_id` or a random one, unless that is refused: a sign on a volume
/// (identity.h) is younger than the first control log. `over`: as of `ElectedEpoch::stand`. Errors:
/// kSuperseded, kFenced (a newer candidate is at work: look again), kWrongCluster, kNewerFormat,
/// kStorage.
[[nodiscard]] Result<Reign> begin_reign(storage::Volume& volume, base::BrokerId self,
                                        const std::optional<std::string>& cluster_id,
                                        Founding founding = Founding::kAllowed,
                                        std::optional<base::ControllerEpoch> over = std::nullopt);

}  // namespace kaas::cluster
