#pragma once

#include "storage/epoch_log.h"
#include "storage/error.h"
#include "storage/volume.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace kaas::storage {

struct InheritedSlot;

/// A place where a partition is not what it should be.
struct Damage {
    std::string file;
    std::optional<std::uint64_t> position;  ///< none: the file as a whole
    std::string why;
};

struct CheckSummary {
    std::size_t partitions = 0;
    std::size_t segments = 0;
    std::size_t batches = 0;
    std::size_t slots = 0;  ///< of coordinators, that were ever written
    std::size_t damages = 0;

    CheckSummary& operator+=(const CheckSummary& other);
};

using ReportDamage = std::function<void(const Damage&)>;

/// Holds partitions against their manifests: every segment that counts is there and long enough,
/// its batches have the right checksums, their offsets go in a row, their leader epochs and times
/// are those that the manifest tells, and what an index promises is where it says. `path` is a
/// partition's directory or one above. What a manifest does not count (a tail that was never
/// recorded, files of old epochs) is not looked at, but for records of newer epochs that have no
/// manifest. Damage that goes on from batch to batch is told once, and of a segment whose log is
/// damaged the indexes are not looked at. Reads only; beside a broker, what that removes meanwhile
/// shows as missing. Blocks.
/// Errors: the volume's, when `path` itself cannot be read.
[[nodiscard]] Result<CheckSummary> check_partitions(Volume& volume, const std::string& path,
                                                    const ReportDamage& report);

/// Reads the epoch log, if there is one, down to its newest picture. Gives how many damages.
[[nodiscard]] std::size_t check_epoch_log(Volume& volume, const EpochLogPath& path,
                                          const ReportDamage& report);

/// Holds what a slot's log says against what a coordinator understands.
using CheckSlot = std::function<std::optional<Damage>(const InheritedSlot&)>;

/// Reads the logs of coordinators' slots in `parent`, if it is there, each down to its newest
/// picture, and has `check` look at what it says: up to the end of its file. What a taker would add
/// to that from the journal of the slot's last owner is not looked at here.
[[nodiscard]] CheckSummary check_slots(Volume& volume, const std::string& parent,
                                       const CheckSlot& check, const ReportDamage& report);

/// Reads the journals of brokers at a volume's root. Gives how many damages.
[[nodiscard]] std::size_t check_journals(Volume& volume, const ReportDamage& report);

}  // namespace kaas::storage
