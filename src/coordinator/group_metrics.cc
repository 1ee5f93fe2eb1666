#include "coordinator/group_metrics.h"

#include "base/metrics.h"

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace kaas::coordinator {
namespace {

constexpr std::array<std::string_view, kGroupStates> kNames = {"Empty", "PreparingRebalance",
                                                               "CompletingRebalance", "Stable"};

}  // namespace

std::string_view to_string(GroupState state) { return kNames.at(static_cast<std::size_t>(state)); }

GroupMetrics::GroupMetrics(base::metrics::Registry& registry)
    : offsets(registry.gauge("kaas_group_offsets", "Committed offsets that are kept.")),
      rebalances(registry.counter("kaas_group_rebalances_total",
                                  "Rebalances that ended with an assignment.")),
      expired_members(registry.counter("kaas_group_expired_members_total",
                                       "Members that were removed because they fell silent.")),
      offset_commits(registry.counter("kaas_group_offset_commits_total",
                                      "Offsets of single partitions that were committed.")),
      expired_offsets(registry.counter("kaas_group_expired_offsets_total",
                                       "Offsets that were removed by their age.")),
      deleted_offsets(registry.counter("kaas_group_deleted_offsets_total",
                                       "Offsets that somebody asked to remove.")) {
    for (std::size_t i = 0; i < kGroupStates; ++i) {
        groups.at(i) = &registry.gauge("kaas_groups", "Consumer groups by their state.",
                                       {{"state", std::string(kNames.at(i))}});
    }
}

}  // namespace kaas::coordinator
