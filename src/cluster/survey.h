#pragma once

#include "base/ids.h"
#include "catalog/image.h"
#include "cluster/error.h"
#include "cluster/identity.h"
#include "storage/volume.h"

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace kaas::cluster {

/// A volume for partitions, as the configuration names it.
struct NamedVolume {
    std::string name;
    storage::Volume* volume = nullptr;
    /// False: made up from the path, so a name that the volume remembers goes before it.
    bool name_chosen = true;
    std::map<std::string, std::string> labels{};
    bool default_eligible = true;  ///< takes partitions of topics that ask for no volume
    bool cordoned = false;         ///< gets no new partitions, until a dynamic config says other
    bool takes_partitions = true;  ///< false: has the cluster's own files and nothing else
};

/// The name of a volume for the cluster's own files alone; no directory for partitions may be
/// called so.
inline constexpr const char* kClusterOnlyVolume = "__cluster";

/// What a start has to do with, before it has touched any of it.
struct Survey {
    /// One that cannot even be read: the rest is served without it.
    struct Broken {
        std::string path;
        std::string why;
    };
    struct Found {
        NamedVolume volume;            ///< by the name that counts
        std::optional<Identity> sign;  ///< none: never used, or its mount is missing
    };
    std::vector<Found> volumes;
    std::vector<Broken> broken;
    storage::Volume* cluster = nullptr;     ///< has, or gets, the cluster's own files
    std::string cluster_volume;             ///< its name, or its root when it holds no partitions
    std::string slot_volume;                ///< how the assignment of slots calls it
    std::optional<std::string> cluster_id;  ///< none yet: this is its first start
};

/// Whether other brokers use the same volumes (`kaas.mode`).
enum class Sharing { kAlone, kShared };

/// Looks at every volume and at nothing else: reads their signs, finds the one with the cluster's
/// own files (`wanted_cluster`, when that is set and there are none yet; else the first), and
/// refuses what does not belong together. The order of `volumes` means nothing once the cluster is
/// there. Errors: kWrongCluster, kNewerFormat, kStorage; the context names the directory and what
/// to do.
[[nodiscard]] Result<Survey> survey(const std::vector<NamedVolume>& volumes,
                                    storage::Volume* wanted_cluster, base::BrokerId self,
                                    const std::optional<std::string>& cluster_id,
                                    Sharing sharing = Sharing::kAlone);

/// A volume with partitions of this broker that it cannot use now: they are offline until a start
/// finds it, and are opened nowhere else.
struct MissingVolume {
    std::string name;
    std::string path;  ///< where it is, or was
    std::size_t partitions = 0;
    std::string why;  ///< and what to do
};

/// Partitions of `self` with an epoch on `volume`.
[[nodiscard]] std::size_t partitions_on(const catalog::Image& image, base::BrokerId self,
                                        const std::string& volume);

/// Takes out of `survey` what is not the volume that `image` knows in its place (an empty
/// directory, as a mount that failed leaves it), and adds those that are nowhere. On shared volumes
/// it does not matter whose partitions they are.
[[nodiscard]] std::vector<MissingVolume> take_out_missing(Survey& survey,
                                                          const catalog::Image& image,
                                                          base::BrokerId self,
                                                          Sharing sharing = Sharing::kAlone);

}  // namespace kaas::cluster
