#pragma once

#include "base/ids.h"
#include "storage/error.h"
#include "storage/log_view.h"
#include "storage/transaction_marker.h"
#include "storage/volume.h"
#include "wire/record_batch.h"
#include "wire/records.h"

#include <map>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace kaas::storage {

struct AbortedRange {
    base::ProducerId producer_id;
    base::Offset first_offset;

    friend bool operator==(const AbortedRange&, const AbortedRange&) = default;
};

/// The aborted transactions that wrote within [from, until), by first offset. Their markers may
/// stand behind, up to the last stable offset. Looks at headers alone, and at the markers. Blocks.
/// Errors: kCorrupt, the volume's.
[[nodiscard]] Result<std::vector<AbortedRange>> find_aborted(Volume& volume, const LogView& view,
                                                             base::Offset from, base::Offset until,
                                                             wire::DecodeSite& site);

/// Which batches belong to aborted transactions, and which markers end one of which nothing is
/// left, while a log is walked from its start. Rules: Apache 4.4 `CleanedTransactionMetadata`.
class TransactionFilter {
public:
    explicit TransactionFilter(const std::vector<AbortedRange>& aborted);

    /// A batch of records: true when its transaction was aborted.
    [[nodiscard]] bool is_aborted(const wire::BatchHeader& batch);
    /// A control batch: true when nothing of what it ends was met.
    [[nodiscard]] bool ends_nothing(const wire::BatchHeader& batch,
                                    const std::optional<ParsedMarker>& marker);

private:
    void begin_up_to(base::Offset offset);

    std::multimap<base::Offset, base::ProducerId> waiting_;
    /// Open aborted ones, and whether any batch of theirs was met.
    std::unordered_map<base::ProducerId, bool> aborted_;
    std::unordered_set<base::ProducerId> committed_;
};

}  // namespace kaas::storage
