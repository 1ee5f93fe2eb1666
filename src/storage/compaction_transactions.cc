#include "storage/compaction_transactions.h"

#include "storage/segment.h"
#include "storage/sparse_index.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace kaas::storage {

namespace {

/// Follows the transactions of [from, until) to their ends.
class AbortSearch {
public:
    AbortSearch(Volume& volume, base::Offset from, base::Offset until, wire::DecodeSite& site)
        : volume_(volume), from_(from), until_(until), site_(site) {}

    /// True when all that began has ended, so that nothing behind matters.
    [[nodiscard]] Result<bool> walk(const SegmentSpan& span, base::Offset limit) {
        KAAS_TRY_ASSIGN(file, span.segment->log(volume_, Patience::kMayBlock));
        KAAS_TRY_ASSIGN(first, locate(volume_, span, from_, Patience::kMayBlock));
        if (!first) return false;
        const auto& path = span.segment->path();
        HeaderCursor cursor(*file, path, first->position, span.facts.bytes, Patience::kMayBlock);
        for (;;) {
            KAAS_TRY_ASSIGN(place, cursor.next());
            if (!place) return false;
            const bool behind = place->base_offset >= until_;
            if (place->base_offset >= limit || (behind && open_.empty())) return true;
            const auto& header = cursor.header();
            if (!header.transactional() || !header.has_producer_id()) continue;
            if (header.control()) {
                KAAS_TRY(end(*file, path, *place, header));
            } else if (!behind) {
                open_.try_emplace(base::ProducerId{header.producer_id}, place->base_offset);
            }
        }
    }

    [[nodiscard]] std::vector<AbortedRange> take() {
        std::ranges::sort(aborted_, {}, &AbortedRange::first_offset);
        return std::move(aborted_);
    }

private:
    [[nodiscard]] Result<void> end(File& file, const std::string& path, const BatchPlace& place,
                                   const wire::BatchHeader& header) {
        const auto producer = base::ProducerId{header.producer_id};
        const auto known = open_.find(producer);
        if (known == open_.end()) return {};
        std::vector<std::byte> bytes(place.bytes);
        KAAS_TRY(read_exactly(file, place.position, bytes, Patience::kMayBlock));
        const auto marker = parse_marker({.header = header, .bytes = bytes}, site_);
        if (!marker) {
            return fail(ErrorCode::kCorrupt,
                        fmt::format("{} at {}: {}", path, place.position, marker.error().context));
        }
        if (!*marker) return {};
        if ((*marker)->end == TransactionEnd::kAbort) aborted_.push_back({producer, known->second});
        open_.erase(known);
        return {};
    }

    Volume& volume_;
    const base::Offset from_;
    const base::Offset until_;
    wire::DecodeSite& site_;
    std::unordered_map<base::ProducerId, base::Offset> open_;
    std::vector<AbortedRange> aborted_;
};

}  // namespace

Result<std::vector<AbortedRange>> find_aborted(Volume& volume, const LogView& view,
                                               base::Offset from, base::Offset until,
                                               wire::DecodeSite& site) {
    AbortSearch search(volume, from, until, site);
    for (const auto* span = view.span_of(from); span != nullptr; span = view.next(*span)) {
        KAAS_TRY_ASSIGN(done, search.walk(*span, view.last_stable_offset));
        if (done) break;
    }
    return search.take();
}

TransactionFilter::TransactionFilter(const std::vector<AbortedRange>& aborted) {
    for (const auto& range : aborted) waiting_.emplace(range.first_offset, range.producer_id);
}

void TransactionFilter::begin_up_to(base::Offset offset) {
    const auto later = waiting_.upper_bound(offset);
    for (auto it = waiting_.begin(); it != later; ++it) aborted_.try_emplace(it->second, false);
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
    known->second = true;
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
    const bool met = known->second;
    aborted_.erase(known);
    return !met;
}

}  // namespace kaas::storage
