#pragma once

#include "base/ids.h"
#include "catalog/image.h"
#include "cluster/admin.h"
#include "cluster/draft.h"
#include "cluster/error.h"

#include <vector>

/// What administrative requests about leaders, replicas and brokers do to a draft, by Apache's
/// rules and in its words (`ReplicationControlManager` of 4.4.0). Pure: no I/O, no threads.
///
/// Nothing is copied here, so a reassignment is done as soon as one of the new list leads: at once
/// if the leader is in it, else when the leader has given its epoch back.
namespace kaas::cluster {

[[nodiscard]] Result<std::vector<TopicOutcomes>> plan(const ElectLeaders& request, Draft& draft);
[[nodiscard]] std::vector<TopicOutcomes> plan(const AlterReassignments& request, Draft& draft);
[[nodiscard]] std::vector<OngoingReassignments> list(const ListReassignments& request,
                                                     const catalog::Image& image);

/// UnregisterBroker (64). One that is gone is forgotten. A living one drains: it gives back what it
/// leads and gets nothing new, but stays a member until its process ends; then it can be forgotten.
/// One that is started again comes back whole.
[[nodiscard]] Result<void> unregister(base::BrokerId broker, Draft& draft);

}  // namespace kaas::cluster
