#pragma once

#include "base/ids.h"
#include "storage/epoch_log.h"
#include "storage/error.h"
#include "storage/manifest.h"
#include "storage/segment.h"
#include "storage/volume.h"

#include <memory>
#include <string>

// What the beginning of a partition's epoch makes on its volume, from the outermost directory to
// the picture, be it at the first write or at the recovery of a tail.

namespace kaas::storage {

/// Makes the topic's directory of `<topic>/<partition>`; that it exists already is fine. Only at an
/// opening, never at a write: an epoch that outlives its topic must not make it again (DESIGN 8).
/// Durable by name once `make_partition_directory` is.
[[nodiscard]] Result<void> make_topic_directory(Volume& volume, const std::string& directory);

/// Makes the partition's directory in its topic's; that it exists already is fine. Both are durable
/// by name then. Errors: kNotFound when the topic's is not there (any more), the volume's.
[[nodiscard]] Result<void> make_partition_directory(Volume& volume, const std::string& directory,
                                                    Syncs syncs = Syncs::kNow);

/// An epoch's first segment, open for writing.
struct FirstSegment {
    std::shared_ptr<Segment> segment;
    std::shared_ptr<File> log;
};

/// Makes the epoch's directory, exclusively, and its first segment. What is in the directory, and
/// its names, are the caller's to sync before the picture. Errors: kExists when a taker has closed
/// the epoch, the volume's.
[[nodiscard]] Result<FirstSegment> make_first_segment(Volume& volume, const PartitionPaths& paths,
                                                      SegmentName name);

/// Writes the picture, the commit point: all that `manifest` names is durable.
[[nodiscard]] Result<EpochLog> write_first_picture(Volume& volume, const PartitionPaths& paths,
                                                   base::LeaderEpoch epoch,
                                                   const Manifest& manifest, Syncs syncs);

}  // namespace kaas::storage
