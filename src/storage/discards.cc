#include "storage/discards.h"

#include <algorithm>
#include <span>
#include <vector>

namespace kaas::storage {

void Discards::add(std::span<const SegmentName> names, base::Clock::Steady due) {
    remove(names);
    for (const auto& name : names) waiting_.push_back({name, due});
}

std::vector<SegmentName> Discards::due(base::Clock::Steady now) const {
    std::vector<SegmentName> names;
    for (const auto& waiting : waiting_) {
        if (waiting.due <= now) names.push_back(waiting.name);
    }
    return names;
}

void Discards::remove(std::span<const SegmentName> names) {
    std::erase_if(waiting_, [&](const Waiting& waiting) {
        return std::ranges::find(names, waiting.name) != names.end();
    });
}

base::Clock::Steady Discards::next_due() const {
    auto next = base::Clock::Steady::max();
    for (const auto& waiting : waiting_) next = std::min(next, waiting.due);
    return next;
}

}  // namespace kaas::storage
