#pragma once

#include "storage/epoch_log.h"
#include "storage/log_view.h"
#include "storage/manifest.h"
#include "storage/producer_state.h"
#include "storage/segment_plan.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace kaas::storage {

struct PartitionLogOptions;

/// A partition as it was found: what a log under a new epoch starts from.
struct Opened {
    PartitionPaths paths;
    base::Offset end;  ///< the next offset
    SegmentPlan plan;  ///< of the segment that the next batch goes to
    ProducerState producers;
    Manifest manifest;  ///< as this epoch's picture says it, or will say it at the first write
    LogView view;
    /// Set when something had to be recovered, so that this epoch has begun.
    std::unique_ptr<EpochLog> epoch_log{};
    std::shared_ptr<Segment> active{};
    std::shared_ptr<File> active_log{};
    std::optional<base::LeaderEpoch> written_epoch{};
};

/// Takes a partition over (DESIGN 6 and 7): walks down to the newest picture, trusts what is
/// recorded as synced, copies the good part of the tail into this epoch's first segment, and checks
/// the session before anything is served. When all that was found counts as it is, nothing is
/// written. Blocks. Errors: kExists and kNotFound (somebody newer was here), kFenced, kCorrupt with
/// file and offset, the volume's.
[[nodiscard]] Result<Opened> recover(const PartitionLogOptions& options);
/// The same for many at once, all of one log dir: what must be written is made durable by two syncs
/// for all of them, where the volume can do so. In order of `options`.
[[nodiscard]] std::vector<Result<Opened>> recover_together(
    std::span<const PartitionLogOptions> options);

}  // namespace kaas::storage
