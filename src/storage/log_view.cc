#include "storage/log_view.h"

#include <algorithm>
#include <cstdint>
#include <optional>

namespace kaas::storage {

const SegmentSpan* LogView::span_of(base::Offset offset) const {
    const auto later =
        std::partition_point(sealed->begin(), sealed->end(),
                             [&](const SegmentSpan& span) { return span.facts.end <= offset; });
    if (later != sealed->end()) return &*later;
    return last.segment != nullptr && offset < last.facts.end ? &last : nullptr;
}

const SegmentSpan* LogView::next(const SegmentSpan& span) const {
    return &span == &last ? nullptr : span_of(span.facts.end);
}

std::uint64_t LogView::bytes() const {
    auto total = last.facts.bytes;
    for (const auto& span : *sealed) total += span.facts.bytes;
    return total;
}

void PlaceMemory::remember(base::Offset offset, const SegmentName& segment,
                           std::uint64_t position) {
    const Place place{offset, segment, position};
    if (places_.size() < kPlaces) {
        places_.push_back(place);
        return;
    }
    places_[next_] = place;
    next_ = (next_ + 1) % kPlaces;
}

std::optional<std::uint64_t> PlaceMemory::find(base::Offset offset,
                                               const SegmentName& segment) const {
    const auto found = std::find_if(places_.begin(), places_.end(), [&](const Place& place) {
        return place.offset == offset && place.segment == segment;
    });
    if (found == places_.end()) return std::nullopt;
    return found->position;
}

}  // namespace kaas::storage
