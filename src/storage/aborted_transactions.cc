#include "storage/aborted_transactions.h"

#include "base/log.h"
#include "storage/transaction_marker.h"

#include <fmt/format.h>

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace kaas::storage {
namespace {

/// Follows the transactions of a log from its start.
class Replay {
public:
    Replay(Volume& volume, wire::DecodeSite& site) : volume_(volume), site_(site) {}

    /// What was aborted in the segment.
    [[nodiscard]] Result<std::vector<AbortedTransaction>> walk(const SegmentSpan& span) {
        aborted_.clear();
        KAAS_TRY_ASSIGN(file, span.segment->log(volume_, Patience::kMayBlock));
        const auto path = span.segment->path();
        HeaderCursor cursor(*file, *span.segment, 0, span.facts.bytes, Patience::kMayBlock);
        for (;;) {
            KAAS_TRY_ASSIGN(place, cursor.next());
            if (!place) return std::move(aborted_);
            const auto& header = cursor.header();
            if (!header.transactional() || !header.has_producer_id()) continue;
            const base::ProducerId producer{header.producer_id};
            if (!header.control()) {
                const auto [begun, is_new] = open_.try_emplace(producer, place->base_offset);
                if (is_new) by_offset_.emplace(begun->second, producer);
            } else {
                KAAS_TRY_ASSIGN(marker, read_marker(*file, path, *place, header));
                if (marker) end(producer, place->base_offset, marker->end);
            }
        }
    }

private:
    [[nodiscard]] Result<std::optional<ParsedMarker>> read_marker(File& file,
                                                                  const std::string& path,
                                                                  const BatchPlace& place,
                                                                  const wire::BatchHeader& header) {
        std::vector<std::byte> bytes(place.bytes);
        KAAS_TRY(read_exactly(file, place.position, bytes, Patience::kMayBlock));
        auto marker = parse_marker({.header = header, .bytes = bytes}, site_);
        if (!marker) {
            return fail(ErrorCode::kCorrupt,
                        fmt::format("{} at {}: {}", path, place.position, marker.error().context));
        }
        return marker;
    }

    void end(base::ProducerId producer, base::Offset marker, TransactionEnd how) {
        const auto begun = open_.find(producer);
        if (begun == open_.end()) return;
        const auto first = begun->second;
        open_.erase(begun);
        by_offset_.erase(first);
        if (how == TransactionEnd::kCommit) return;
        const auto stable = by_offset_.empty() ? marker + 1 : by_offset_.begin()->first;
        aborted_.push_back({producer, first, marker, stable});
    }

    Volume& volume_;
    wire::DecodeSite& site_;
    std::unordered_map<base::ProducerId, base::Offset> open_;
    std::map<base::Offset, base::ProducerId> by_offset_;
    std::vector<AbortedTransaction> aborted_;
};

[[nodiscard]] Result<bool> collect_from(Volume& volume, const LogView& view,
                                        const SegmentSpan& span, base::Offset from,
                                        base::Offset until, Patience patience,
                                        wire::DecodeSite& site,
                                        std::vector<AbortedTransaction>& found) {
    auto& index = span.segment->aborted();
    const auto path = span.segment->aborted_path();
    const auto before = found.size();
    const auto collect = [&] {
        return index.collect(volume, path, span.facts.aborted, from, until, patience, found);
    };
    auto complete = collect();
    if (complete || complete.error().code != ErrorCode::kCorrupt) return complete;
    if (patience != Patience::kMayBlock) return fail(ErrorCode::kWouldBlock, path);
    base::log::warn("storage", "{}; aborted transactions are read from the log instead",
                    complete.error().context);
    KAAS_TRY_ASSIGN(rebuilt, read_aborted(volume, view, span, site));
    index.rebuild(std::move(rebuilt));
    found.resize(before);
    return collect();
}

}  // namespace

Result<std::vector<AbortedTransaction>> collect_aborted(Volume& volume, const LogView& view,
                                                        const SegmentSpan& first, base::Offset from,
                                                        base::Offset until, Patience patience,
                                                        wire::DecodeSite& site) {
    std::vector<AbortedTransaction> found;
    for (const auto* span = &first; span != nullptr; span = view.next(*span)) {
        KAAS_TRY_ASSIGN(complete,
                        collect_from(volume, view, *span, from, until, patience, site, found));
        if (complete) break;
    }
    return found;
}

Result<std::vector<AbortedTransaction>> read_aborted(Volume& volume, const LogView& view,
                                                     const SegmentSpan& segment,
                                                     wire::DecodeSite& site) {
    Replay replay(volume, site);
    for (const auto& span : *view.sealed) {
        if (span.facts.base >= segment.facts.base) break;
        KAAS_TRY(replay.walk(span));
    }
    return replay.walk(segment);
}

}  // namespace kaas::storage
