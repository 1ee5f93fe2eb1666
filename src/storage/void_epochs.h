#pragma once

#include "base/ids.h"
#include "storage/error.h"
#include "storage/segment.h"
#include "storage/volume.h"

#include <optional>
#include <string>

namespace kaas::storage {

/// Records in an epoch without a picture.
struct StrayRecords {
    std::string file;
    base::Offset end;  ///< one behind the last of them
};

/// What the segments of a void epoch hold beyond the end of the log. An owner writes no record
/// before its picture is durable, and a taker that died leaves copies of what it found; so records
/// that nobody else has mean that a picture was lost. They are no proof (a copy may be of what a
/// crash took from its original), so nobody adopts them: a person must hear of them. Empty when
/// there are none, or no directory. Blocks.
[[nodiscard]] Result<std::optional<StrayRecords>> find_stray_records(Volume& volume,
                                                                     const PartitionPaths& paths,
                                                                     base::LeaderEpoch epoch,
                                                                     base::Offset end);

/// One behind the last record of the good batches that a segment's file begins with; empty when
/// there is none.
[[nodiscard]] Result<std::optional<base::Offset>> end_of_batches(Volume& volume,
                                                                 const std::string& path);

}  // namespace kaas::storage
