#pragma once

#include "base/ids.h"
#include "base/metrics.h"
#include "coordinator/group_slot.h"

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>

namespace kaas::broker {

/// How far groups are behind: `kaas_group_lag` by group, topic and partition, for offsets of groups
/// whose coordinator is here, as far as the end of the partition is known here. Clients make up as
/// many groups as they like, so series are bounded; `kaas_group_lag_truncated` is 1 when some have
/// none. Thread: the coordinators' loop.
class GroupLag {
public:
    static constexpr std::size_t kSeriesMax = 10'000;
    /// Where a partition's committed records end; empty when that is not known here.
    using EndOffset = std::function<std::optional<base::Offset>(
        const coordinator::GroupSlot::CommittedOffset& committed)>;

    explicit GroupLag(base::metrics::Registry& registry, std::size_t series_max = kSeriesMax);

    /// Looks at the offsets of all slots; series of those that are gone end.
    void update(std::span<coordinator::GroupSlot* const> slots, const EndOffset& end_of);

private:
    using Key = std::tuple<std::string, std::string, std::int32_t>;
    struct Series {
        base::metrics::Gauge* gauge;
        std::size_t seen;  ///< the number of the update
    };
    void show(const coordinator::GroupSlot::CommittedOffset& committed, base::Offset end);
    void end_unseen();

    base::metrics::Registry& registry_;
    base::metrics::Gauge& truncated_;
    const std::size_t series_max_;
    std::size_t updates_ = 0;
    std::map<Key, Series> series_;
};

}  // namespace kaas::broker
