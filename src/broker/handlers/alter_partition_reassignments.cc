#include "broker/handlers/alter_partition_reassignments.h"

#include "broker/controller_calls.h"
#include "broker/errors.h"
#include "cluster/admin.h"

#include <chrono>
#include <expected>
#include <optional>
#include <utility>
#include <vector>

namespace kaas::broker {
namespace {

cluster::AlterReassignments to_alter(const wire::AlterPartitionReassignmentsRequest& request) {
    cluster::AlterReassignments alter;
    alter.allow_factor_change = request.allow_replication_factor_change;
    for (const auto& topic : request.topics) {
        auto& altered = alter.topics.emplace_back(cluster::ReassignTopic{topic.name.str(), {}});
        for (const auto& partition : topic.partitions) {
            cluster::ReassignPartition one{partition.partition_index, std::nullopt};
            if (partition.replicas) {
                one.replicas.emplace(partition.replicas->begin(), partition.replicas->end());
            }
            altered.partitions.push_back(std::move(one));
        }
    }
    return alter;
}

/// Borrows the names from `outcomes`.
wire::AlterPartitionReassignmentsResponse to_wire(
    const std::vector<cluster::TopicOutcomes>& outcomes) {
    wire::AlterPartitionReassignmentsResponse response;
    response.error_message = std::nullopt;
    for (const auto& [name, partitions] : outcomes) {
        auto& topic = response.responses.emplace_back();
        topic.name = name;
        for (const auto& [index, outcome] : partitions) {
            auto& partition = topic.partitions.emplace_back();
            partition.partition_index = index;
            partition.error_message = std::nullopt;
            if (outcome) continue;
            partition.error_code = broker::to_wire(outcome.error().code);
            if (!outcome.error().context.empty()) {
                partition.error_message = outcome.error().context;
            }
        }
    }
    return response;
}

}  // namespace

void alter_partition_reassignments(CallPtr call, wire::AlterPartitionReassignmentsRequest request) {
    // As Apache's controller, whose empty answer has an empty message.
    if (request.topics.empty()) {
        return call->answer(wire::AlterPartitionReassignmentsResponse{});
    }
    auto alter = to_alter(request);
    alter.deadline = call->services().clock.now() + std::chrono::milliseconds(request.timeout_ms);
    auto& home = call->home();
    auto& controller = call->services().node.controller();
    const bool allowed = request.allow_replication_factor_change;
    auto done = [call = std::move(call), asked = alter.topics,
                 allowed](cluster::Result<std::vector<cluster::TopicOutcomes>> altered) {
        if (!altered && call->services().controller_calls.ask_next(call, altered.error())) return;
        std::vector<cluster::TopicOutcomes> failed;
        for (const auto& topic : altered ? decltype(asked){} : asked) {
            auto& outcomes = failed.emplace_back(cluster::TopicOutcomes{topic.name, {}});
            for (const auto& one : topic.partitions) {
                outcomes.partitions.push_back({one.partition, std::unexpected(altered.error())});
            }
        }
        auto response = to_wire(altered ? *altered : failed);
        response.allow_replication_factor_change = allowed;
        if (!altered) {
            response.error_code = broker::to_wire(altered.error().code);
            response.error_message = altered.error().context;
        }
        call->answer(response);
    };
    controller.alter_reassignments(std::move(alter), {&home, std::move(done)});
}

}  // namespace kaas::broker
