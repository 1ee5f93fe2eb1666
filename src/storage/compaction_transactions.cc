#include "storage/compaction_transactions.h"

#include <optional>
#include <vector>

namespace kaas::storage {

TransactionFilter::TransactionFilter(const std::vector<AbortedTransaction>& aborted) {
    for (const auto& one : aborted) waiting_.emplace(one.first_offset, one);
}

void TransactionFilter::begin_up_to(base::Offset offset) {
    const auto later = waiting_.upper_bound(offset);
    for (auto it = waiting_.begin(); it != later; ++it)
        aborted_.try_emplace(it->second.producer_id, Open{it->second});
    waiting_.erase(waiting_.begin(), later);
}

bool TransactionFilter::is_aborted(const wire::BatchHeader& batch) {
    begin_up_to(base::Offset{batch.last_offset()});
    if (!batch.transactional()) return false;
    const base::ProducerId producer{batch.producer_id};
    const auto known = aborted_.find(producer);
    if (known == aborted_.end()) {
        committed_.insert(producer);
        return false;
    }
    known->second.met = true;
    return true;
}

bool TransactionFilter::ends_nothing(const wire::BatchHeader& batch,
                                     const std::optional<ParsedMarker>& marker) {
    begin_up_to(base::Offset{batch.last_offset()});
    const base::ProducerId producer{batch.producer_id};
    if (!marker) return batch.count == 0;
    if (marker->end == TransactionEnd::kCommit) return committed_.erase(producer) == 0;
    const auto known = aborted_.find(producer);
    if (known == aborted_.end()) return true;
    const auto [transaction, met] = known->second;
    aborted_.erase(known);
    if (met) ended_.push_back(transaction);
    return !met;
}

}  // namespace kaas::storage
