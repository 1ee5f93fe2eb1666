#include "cluster/leader_admin.h"

#include "base/ids.h"
#include "base/result.h"
#include "catalog/change.h"
#include "catalog/image.h"
#include "catalog/model.h"
#include "cluster/admin.h"
#include "cluster/draft.h"
#include "cluster/error.h"
#include "cluster/leadership.h"
#include "cluster/topic_admin.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kaas::cluster {
namespace {

using Brokers = std::vector<base::BrokerId>;

constexpr std::int8_t kPreferred = 0;
constexpr std::int8_t kUnclean = 1;

/// What is in `list` and not in `other`, sorted.
Brokers without(const Brokers& list, const Brokers& other) {
    Brokers rest;
    std::ranges::copy_if(list, std::back_inserter(rest), [&](base::BrokerId id) {
        return std::ranges::find(other, id) == other.end();
    });
    std::ranges::sort(rest);
    return rest;
}

Result<void> check_election(const catalog::Image& image, const catalog::Partition& partition,
                            std::int8_t type) {
    const auto leader = image.leader(partition);
    const auto preferred = partition.replicas.front();
    if (type == kPreferred ? leader == preferred : leader != catalog::kNoBroker) {
        return fail(ErrorCode::kElectionNotNeeded,
                    "Leader election not needed for topic partition.");
    }
    // Who could lead a partition without a leader leads it by now: there is nobody to choose.
    if (type == kUnclean) {
        return fail(ErrorCode::kEligibleLeadersNotAvailable,
                    "Eligible topic partition leaders are not available.");
    }
    if (leader == catalog::kNoBroker || !can_take(image, preferred, partition.volume())) {
        return fail(ErrorCode::kPreferredLeaderNotAvailable,
                    "The preferred leader was not available.");
    }
    return {};
}

Result<void> elect(const std::string& name, std::int32_t index, std::int8_t type, Draft& draft) {
    const auto* topic = draft.image().topic(name);
    if (topic == nullptr) {
        return fail(ErrorCode::kUnknownTopicOrPartition, "No such topic as " + name);
    }
    const auto* partition = topic->partition(base::PartitionId(index));
    if (partition == nullptr) {
        return fail(ErrorCode::kUnknownTopicOrPartition,
                    fmt::format("No such partition as {}-{}", name, index));
    }
    KAAS_TRY(check_election(draft.image(), *partition, type));
    if (!partition->asked_back) {
        const base::TopicPartition id{topic->id, base::PartitionId(index)};
        draft.add(catalog::AskedBack{{{id, partition->leader_epoch}}});
    }
    return {};
}

std::vector<TopicIndexes> all_partitions(const catalog::Image& image) {
    std::vector<TopicIndexes> topics;
    for (const auto* topic : image.topics_by_name()) {
        auto& all = topics.emplace_back(TopicIndexes{topic->name, {}});
        for (std::size_t i = 0; i < topic->partitions.size(); ++i) {
            all.partitions.push_back(static_cast<std::int32_t>(i));
        }
    }
    return topics;
}

Result<void> change(const catalog::Partition& partition, const Brokers& replicas,
                    bool allow_factor_change, const catalog::Image& image) {
    KAAS_TRY(check_replicas(replicas, std::nullopt, image));
    const auto& present = partition.target.empty() ? partition.replicas : partition.target;
    if (!allow_factor_change && present.size() != replicas.size()) {
        return fail(ErrorCode::kInvalidReplicationFactor,
                    fmt::format("The replication factor is changed from {} to {}", present.size(),
                                replicas.size()));
    }
    return {};
}

Result<void> reassign(const std::string& name, const ReassignPartition& request,
                      bool allow_factor_change, Draft& draft) {
    const auto* topic = draft.image().topic(name);
    if (topic == nullptr) {
        return fail(ErrorCode::kUnknownTopicOrPartition,
                    fmt::format("Unable to find a topic named {}.", name));
    }
    const base::PartitionId index(request.partition);
    const auto* partition = topic->partition(index);
    if (partition == nullptr) {
        return fail(ErrorCode::kUnknownTopicOrPartition,
                    fmt::format("Unable to find partition {}:{}.", name, request.partition));
    }
    if (!request.replicas && partition->target.empty()) {
        return fail(ErrorCode::kNoReassignmentInProgress, {});  // Apache has no words for it
    }
    const auto replicas = request.replicas.value_or(partition->replicas);
    if (request.replicas) {
        KAAS_TRY(change(*partition, replicas, allow_factor_change, draft.image()));
    }
    const base::TopicPartition id{topic->id, index};
    if (replicas != partition->replicas || !partition->target.empty()) {
        draft.add(catalog::ReplicasChanged{{{id, replicas}}});
    }
    return {};
}

std::optional<OngoingReassignment> ongoing(const catalog::Topic& topic, std::int32_t index) {
    const auto* partition = topic.partition(base::PartitionId(index));
    if (partition == nullptr || partition->target.empty()) return std::nullopt;
    OngoingReassignment shown{.partition = index,
                              .replicas = partition->target,
                              .adding = without(partition->target, partition->replicas),
                              .removing = without(partition->replicas, partition->target)};
    shown.replicas.insert(shown.replicas.end(), shown.removing.begin(), shown.removing.end());
    return shown;
}

}  // namespace

Result<std::vector<TopicOutcomes>> plan(const ElectLeaders& request, Draft& draft) {
    if (request.type != kPreferred && request.type != kUnclean) {
        return fail(ErrorCode::kInvalidRequest,
                    fmt::format("Unknown election type {}", request.type));
    }
    const auto topics = request.topics ? *request.topics : all_partitions(draft.image());
    std::vector<TopicOutcomes> answers;
    for (const auto& [name, partitions] : topics) {
        auto& answer = answers.emplace_back(TopicOutcomes{name, {}});
        for (const auto index : partitions) {
            auto outcome = elect(name, index, request.type, draft);
            if (!request.topics && !outcome &&
                outcome.error().code == ErrorCode::kElectionNotNeeded) {
                continue;
            }
            answer.partitions.push_back({index, std::move(outcome)});
        }
    }
    return answers;
}

std::vector<TopicOutcomes> plan(const AlterReassignments& request, Draft& draft) {
    std::vector<TopicOutcomes> answers;
    for (const auto& [name, partitions] : request.topics) {
        auto& answer = answers.emplace_back(TopicOutcomes{name, {}});
        for (const auto& one : partitions) {
            answer.partitions.push_back(
                {one.partition, reassign(name, one, request.allow_factor_change, draft)});
        }
    }
    // A partition without a leader may have one among the new replicas.
    auto assignments = place_homeless(draft.image());
    if (!assignments.empty()) draft.add(catalog::Assigned{std::move(assignments)});
    return answers;
}

std::vector<OngoingReassignments> list(const ListReassignments& request,
                                       const catalog::Image& image) {
    const auto topics = request.topics ? *request.topics : all_partitions(image);
    std::vector<OngoingReassignments> answers;
    for (const auto& [name, partitions] : topics) {
        const auto* topic = image.topic(name);
        if (topic == nullptr) continue;
        OngoingReassignments answer{name, {}};
        for (const auto index : partitions) {
            if (auto found = ongoing(*topic, index)) answer.partitions.push_back(*found);
        }
        if (!answer.partitions.empty()) answers.push_back(std::move(answer));
    }
    return answers;
}

Result<void> unregister(base::BrokerId broker, Draft& draft) {
    const auto* known = draft.image().broker(broker);
    if (known == nullptr) {
        return fail(ErrorCode::kBrokerIdNotRegistered,
                    fmt::format("Broker ID {} is not currently registered", broker));
    }
    if (!known->living()) {
        draft.add(catalog::BrokerUnregistered{broker});
    } else if (!known->draining) {
        draft.add(catalog::BrokerDraining{broker});
    }
    return {};
}

}  // namespace kaas::cluster
