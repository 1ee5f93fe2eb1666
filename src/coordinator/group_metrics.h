#pragma once

#include "base/metrics.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace kaas::coordinator {

/// Where a group is in its life (Apache `ClassicGroupState`). There is no Dead one: a group that is
/// deleted is gone.
enum class GroupState : std::uint8_t { kEmpty, kPreparingRebalance, kCompletingRebalance, kStable };
inline constexpr std::size_t kGroupStates = 4;
/// As DescribeGroups and ListGroups call it.
[[nodiscard]] std::string_view to_string(GroupState state);

/// What all group slots of a broker count together: `kaas_groups`, `kaas_group_*`, `kaas_offset*`.
/// Thread: any.
struct GroupMetrics {
    explicit GroupMetrics(base::metrics::Registry& registry);

    [[nodiscard]] base::metrics::Gauge& of(GroupState state) const {
        return *groups.at(static_cast<std::size_t>(state));
    }

    std::array<base::metrics::Gauge*, kGroupStates> groups{};
    base::metrics::Gauge& offsets;            ///< committed ones that are kept
    base::metrics::Counter& rebalances;       ///< that ended with an assignment
    base::metrics::Counter& expired_members;  ///< that fell silent
    base::metrics::Counter& offset_commits;   ///< of single partitions
    base::metrics::Counter& expired_offsets;
    base::metrics::Counter& deleted_offsets;  ///< by OffsetDelete and DeleteGroups
};

}  // namespace kaas::coordinator
