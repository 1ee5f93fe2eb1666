#include "broker/coordination/group_lag.h"

#include "base/ids.h"
#include "base/metrics.h"
#include "coordinator/group_slot.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace kaas::broker {
namespace {

constexpr const char* kName = "kaas_group_lag";

base::metrics::Labels labels_of(const std::tuple<std::string, std::string, std::int32_t>& key) {
    const auto& [group, topic, partition] = key;
    return {{"group", group}, {"topic", topic}, {"partition", std::to_string(partition)}};
}

}  // namespace

GroupLag::GroupLag(base::metrics::Registry& registry, std::size_t series_max)
    : registry_(registry),
      truncated_(registry.gauge("kaas_group_lag_truncated",
                                "1 when there are more groups and partitions than kaas_group_lag "
                                "shows.")),
      series_max_(series_max) {}

void GroupLag::update(std::span<coordinator::GroupSlot* const> slots, const EndOffset& end_of) {
    ++updates_;
    std::size_t shown = 0;
    bool truncated = false;
    for (const auto* slot : slots) {
        slot->visit_offsets([&](const coordinator::GroupSlot::CommittedOffset& committed) {
            const auto end = end_of(committed);
            if (!end) return true;
            truncated = shown == series_max_;
            if (truncated) return false;
            show(committed, *end);
            ++shown;
            return true;
        });
        if (truncated) break;
    }
    truncated_.set(truncated ? 1 : 0);
    end_unseen();
}

void GroupLag::show(const coordinator::GroupSlot::CommittedOffset& committed, base::Offset end) {
    Key key{committed.group_id, committed.topic, committed.partition.value()};
    auto place = series_.find(key);
    if (place == series_.end()) {
        auto& gauge =
            registry_.gauge(kName, "Records behind a group's committed offset.", labels_of(key));
        place = series_.emplace(std::move(key), Series{&gauge, updates_}).first;
    }
    place->second.seen = updates_;
    // A group may be set behind the end, as long as nobody reads there.
    place->second.gauge->set(std::max<std::int64_t>(end - committed.offset, 0));
}

void GroupLag::end_unseen() {
    std::erase_if(series_, [&](const auto& one) {
        const bool is_gone = one.second.seen != updates_;
        if (is_gone) registry_.remove(kName, labels_of(one.first));
        return is_gone;
    });
}

}  // namespace kaas::broker
