#pragma once

#include "base/clock.h"
#include "storage/mount.h"
#include "storage/volume.h"

#include <string>
#include <string_view>
#include <vector>

/// Whether a directory keeps the promises that fencing and durability are built on (DESIGN 6, 9).
namespace kaas::cluster {

enum class Verdict {
    kGood,
    kNote,     ///< works, and there is something to know
    kBad,      ///< a promise was seen broken: acknowledged records may be lost here
    kUnknown,  ///< an error came between; nothing is proven
};
[[nodiscard]] std::string_view name_of(Verdict verdict);

struct Finding {
    std::string_view property;  ///< one word or two, for scripts
    Verdict verdict = Verdict::kGood;
    std::string what;         ///< was seen
    std::string_view advice;  ///< what to do about it; empty when it is good
};
using Findings = std::vector<Finding>;

struct VolumeCheckOptions {
    const base::Clock* clock = &base::Clock::system();
    /// Repetitions of what may go wrong only sometimes. 0: the shortest, as a start makes it, with
    /// four syncs and none of them timed.
    int rounds = 0;
};

/// Proves the promises one by one, in a new directory below `__check` that is removed again. What
/// `mine` does must be seen by `other`: the same volume, through another opening or another mount.
/// Blocks.
[[nodiscard]] Findings check_volume(storage::Volume& mine, storage::Volume& other,
                                    const VolumeCheckOptions& options = {});

/// Whether both are one directory of one file system, by a name that `mine` makes: not by inode
/// numbers, which each client of a network file system has of its own.
[[nodiscard]] storage::Result<bool> is_same_volume(storage::Volume& mine, storage::Volume& other);

/// What the kind of file system and its mount options say. What is not known is good: the proof is
/// `check_volume`.
[[nodiscard]] Finding check_mount(const storage::Mount& mount);

/// The first finding that is bad, as a sentence with its advice; empty when there is none.
[[nodiscard]] std::string first_fault(const Findings& findings);

inline constexpr std::string_view kCheckDirectory = "__check";

}  // namespace kaas::cluster
