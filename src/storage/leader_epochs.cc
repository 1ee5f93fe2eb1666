#include "storage/leader_epochs.h"

#include <algorithm>
#include <optional>

namespace kaas::storage {

void LeaderEpochs::assign(base::LeaderEpoch epoch, base::Offset offset) {
    if (!starts_.empty() && starts_.back().epoch >= epoch) return;
    while (!starts_.empty() && starts_.back().offset >= offset) starts_.pop_back();
    starts_.push_back({epoch, offset});
}

void LeaderEpochs::begin_at(base::Offset start) {
    const auto later =
        std::upper_bound(starts_.begin(), starts_.end(), start,
                         [](auto wanted, const auto& s) { return wanted < s.offset; });
    if (later == starts_.begin()) return;
    starts_.erase(starts_.begin(), later - 1);
    starts_.front().offset = start;
}

LeaderEpochs::End LeaderEpochs::end_of(base::LeaderEpoch asked, base::Offset log_end) const {
    if (starts_.empty() || asked == base::kNoLeaderEpoch || asked > starts_.back().epoch) return {};
    if (asked == starts_.back().epoch) return {asked, log_end};
    const auto higher =
        std::upper_bound(starts_.begin(), starts_.end(), asked,
                         [](auto wanted, const auto& s) { return wanted < s.epoch; });
    if (higher == starts_.begin()) return {asked, higher->offset};
    return {(higher - 1)->epoch, higher->offset};
}

std::optional<base::LeaderEpoch> LeaderEpochs::at(base::Offset offset) const {
    const auto later =
        std::upper_bound(starts_.begin(), starts_.end(), offset,
                         [](auto wanted, const auto& s) { return wanted < s.offset; });
    if (later == starts_.begin()) return std::nullopt;
    return (later - 1)->epoch;
}

std::optional<base::LeaderEpoch> LeaderEpochs::latest() const {
    if (starts_.empty()) return std::nullopt;
    return starts_.back().epoch;
}

}  // namespace kaas::storage
