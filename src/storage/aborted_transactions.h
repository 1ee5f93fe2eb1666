#pragma once

#include "base/ids.h"
#include "storage/aborted_index.h"
#include "storage/error.h"
#include "storage/log_view.h"
#include "storage/segment.h"
#include "storage/sparse_index.h"
#include "storage/volume.h"
#include "wire/records.h"

#include <vector>

namespace kaas::storage {

/// The aborted transactions that whoever reads [from, until) of committed data has to know, by
/// marker; `first` is the segment of `view` where he begins. Their markers may stand behind, up to
/// the end of the view (Apache `LocalLog.collectAbortedTransactions`). An index that is not what
/// the manifest says is read anew from the log. `site` counts the markers that are read for it.
/// Errors: kWouldBlock, kCorrupt of the log itself, the volume's.
[[nodiscard]] Result<std::vector<AbortedTransaction>> collect_aborted(
    Volume& volume, const LogView& view, const SegmentSpan& first, base::Offset from,
    base::Offset until, Patience patience, wire::DecodeSite& site);

/// What the index of a segment of `view` should hold, read from the log: the headers of all batches
/// up to the segment's end, and its markers. Transactions of which nothing is left are not found,
/// and need not be. Blocks. Errors: kCorrupt, the volume's.
[[nodiscard]] Result<std::vector<AbortedTransaction>> read_aborted(Volume& volume,
                                                                   const LogView& view,
                                                                   const SegmentSpan& segment,
                                                                   wire::DecodeSite& site);

}  // namespace kaas::storage
