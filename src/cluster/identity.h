#pragma once

#include "base/ids.h"
#include "cluster/error.h"
#include "storage/volume.h"

#include <cstdint>
#include <optional>
#include <string>

namespace kaas::cluster {

/// What kaas understands; grows when older versions must not touch what we write.
inline constexpr std::int32_t kVolumeFormat = 1;

/// Which cluster a volume belongs to and which one of its volumes it is, in `kaas.json` at its
/// root: a sign for people, and for a start to turn back at before it touches anything. The truth
/// is in the control log: the sign only says it again, so every writer of it writes the same bytes.
struct Identity {
    std::string cluster_id;
    std::int32_t format = kVolumeFormat;
    /// How the cluster calls the volume, wherever it is mounted. Empty: nobody said.
    std::string volume{};
    /// The volume with the cluster's own files.
    std::string cluster_volume{};
    /// The one broker that writes here: a volume of a standalone broker, which cannot be handed to
    /// another. Empty: many do, or nobody said.
    std::optional<base::BrokerId> broker{};
    /// Many brokers write here (`kaas.mode=volume`).
    bool shared = false;
};

/// Empty when there is no sign yet, or only the beginning of one. Errors: kNewerFormat; kStorage,
/// with file and offset for one that is damaged.
[[nodiscard]] Result<std::optional<Identity>> read_identity(storage::Volume& volume);
/// Puts up the sign if it is not there; durable on return, for its absence says that the volume was
/// never used. Errors: kStorage.
[[nodiscard]] Result<void> write_identity(storage::Volume& volume, const Identity& identity);

}  // namespace kaas::cluster
