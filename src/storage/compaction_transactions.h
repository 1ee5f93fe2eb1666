#pragma once

#include "base/ids.h"
#include "storage/aborted_index.h"
#include "storage/transaction_marker.h"
#include "wire/record_batch.h"

#include <map>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace kaas::storage {

/// Which batches belong to aborted transactions, and which markers end one of which nothing is
/// left, while a log is walked from its start. Rules: Apache 4.4 `CleanedTransactionMetadata`.
class TransactionFilter {
public:
    explicit TransactionFilter(const std::vector<AbortedTransaction>& aborted);

    /// A batch of records: true when its transaction was aborted.
    [[nodiscard]] bool is_aborted(const wire::BatchHeader& batch);
    /// A control batch: true when nothing of what it ends was met.
    [[nodiscard]] bool ends_nothing(const wire::BatchHeader& batch,
                                    const std::optional<ParsedMarker>& marker);
    /// The aborted transactions that ended since the last call and of which something was met: what
    /// belongs into the index of the segment that their markers stand in.
    [[nodiscard]] std::vector<AbortedTransaction> take_ended() { return std::exchange(ended_, {}); }

private:
    void begin_up_to(base::Offset offset);

    struct Open {
        AbortedTransaction transaction;
        bool met = false;  ///< a batch of it
    };
    std::multimap<base::Offset, AbortedTransaction> waiting_;
    std::unordered_map<base::ProducerId, Open> aborted_;
    std::unordered_set<base::ProducerId> committed_;
    std::vector<AbortedTransaction> ended_;
};

}  // namespace kaas::storage
