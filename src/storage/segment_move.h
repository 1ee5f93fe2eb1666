#pragma once

#include "base/ids.h"
#include "storage/error.h"
#include "storage/segment.h"
#include "storage/volume.h"

#include <cstdint>
#include <functional>

namespace kaas::storage {

class PartitionLog;

/// Copies a segment, as far as its facts reach, to the same names on another volume; the
/// partition's directory there must exist. Durable on return, and whole or absent under its own
/// name at every step, so that it may be called again after any failure and with longer facts: only
/// what is missing is copied. Blocks. Errors: of either volume; kNotFound when the segment has left
/// the log meanwhile.
[[nodiscard]] Result<void> copy_segment(Volume& from, Volume& to, const PartitionPaths& paths,
                                        const SegmentFacts& facts);

/// Copies what a log has to another volume, round by round while it is served, until little is left
/// for the time in which it is not. Asks `go_on` behind each segment, with the bytes that are there
/// and the end of their offsets. False when that said no. Blocks. Errors: of either volume.
[[nodiscard]] Result<bool> copy_log(
    PartitionLog& log, Volume& to,
    const std::function<bool(std::uint64_t bytes, base::Offset end)>& go_on);

/// Removes all that a partition has on a volume; its topic's directory stays. May be called again
/// after any failure. Blocks.
[[nodiscard]] Result<void> remove_partition(Volume& volume, const PartitionPaths& paths);

/// Removes the directory of the partition's topic if it is empty. Requires: no log of the topic is
/// open on the volume; one that was never written has nothing in that directory, but needs it.
/// Blocks.
[[nodiscard]] Result<void> remove_empty_topic(Volume& volume, const PartitionPaths& paths);

}  // namespace kaas::storage
