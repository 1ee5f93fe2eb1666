#pragma once

#include "base/ids.h"
#include "storage/log_view.h"
#include "wire/records.h"

#include <cstdint>
#include <optional>

namespace kaas::storage {

struct OffsetAndTimestamp {
    base::Offset offset;
    std::int64_t timestamp_ms = -1;
    base::LeaderEpoch leader_epoch = base::kNoLeaderEpoch;

    friend bool operator==(const OffsetAndTimestamp&, const OffsetAndTimestamp&) = default;
};

/// The first record of the log, below `limit`, whose time is not before `timestamp_ms`; empty when
/// there is none. Finds the batch by its header and decodes that one alone (`site` counts it).
/// Blocks. Rules: Apache 4.4 `UnifiedLog.searchOffsetInLocalLog`, `FileRecords.searchForTimestamp`.
[[nodiscard]] Result<std::optional<OffsetAndTimestamp>> first_record_at_or_after(
    Volume& volume, const LogView& view, std::int64_t timestamp_ms, base::Offset limit,
    wire::DecodeSite& site);

/// The first record that has the newest time of all (KIP-734); empty when it is not below `limit`.
/// As in Apache, a record that was deleted counts as long as its segment is there. As above.
[[nodiscard]] Result<std::optional<OffsetAndTimestamp>> record_of_max_timestamp(
    Volume& volume, const LogView& view, base::Offset limit, wire::DecodeSite& site);

}  // namespace kaas::storage
