#pragma once

#include "storage/error.h"
#include "storage/segment.h"
#include "storage/volume.h"

namespace kaas::storage {

/// Copies a segment, as far as its facts reach, to the same names on another volume; the
/// partition's directory there must exist. Durable on return, and whole or absent under its own
/// name at every step, so that it may be called again after any failure and with longer facts: only
/// what is missing is copied. Blocks. Errors: of either volume; kNotFound when the segment has left
/// the log meanwhile.
[[nodiscard]] Result<void> copy_segment(Volume& from, Volume& to, const PartitionPaths& paths,
                                        const SegmentFacts& facts);

/// Removes all that a partition has on a volume; its topic's directory stays. May be called again
/// after any failure. Blocks.
[[nodiscard]] Result<void> remove_partition(Volume& volume, const PartitionPaths& paths);

/// Removes the directory of the partition's topic if it is empty. Requires: no log of the topic is
/// open on the volume; one that was never written has nothing in that directory, but needs it.
/// Blocks.
[[nodiscard]] Result<void> remove_empty_topic(Volume& volume, const PartitionPaths& paths);

}  // namespace kaas::storage
