#include "broker/handlers/elect_leaders.h"

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

/// The whole request failed: each partition says so, too.
std::vector<cluster::TopicOutcomes> all_failed(
    const std::optional<std::vector<cluster::TopicIndexes>>& topics, const cluster::Error& why) {
    std::vector<cluster::TopicOutcomes> failed;
    if (!topics) return failed;
    for (const auto& [name, partitions] : *topics) {
        auto& topic = failed.emplace_back(cluster::TopicOutcomes{name, {}});
        for (const auto index : partitions) {
            topic.partitions.push_back({index, std::unexpected(why)});
        }
    }
    return failed;
}

/// Borrows the names from `outcomes`.
wire::ElectLeadersResponse to_wire(const std::vector<cluster::TopicOutcomes>& outcomes) {
    wire::ElectLeadersResponse response;
    for (const auto& [name, partitions] : outcomes) {
        auto& topic = response.replica_election_results.emplace_back();
        topic.topic = name;
        for (const auto& [index, outcome] : partitions) {
            auto& partition = topic.partition_result.emplace_back();
            partition.partition_id = index;
            partition.error_message = std::nullopt;
            if (outcome) continue;
            partition.error_code = broker::to_wire(outcome.error().code);
            partition.error_message = outcome.error().context;
        }
    }
    return response;
}

}  // namespace

void elect_leaders(CallPtr call, wire::ElectLeadersRequest request) {
    cluster::ElectLeaders elect;
    elect.type = request.election_type;
    elect.deadline = call->services().clock.now() + std::chrono::milliseconds(request.timeout_ms);
    if (request.topic_partitions) {
        elect.topics.emplace();
        for (const auto& topic : *request.topic_partitions) {
            elect.topics->push_back({topic.topic.str(), topic.partitions});
        }
    }
    auto& home = call->home();
    auto& controller = call->services().node.controller();
    auto asked = elect.topics;
    auto done = [call = std::move(call), asked = std::move(asked)](
                    cluster::Result<std::vector<cluster::TopicOutcomes>> elected) {
        if (elected) return call->answer(to_wire(*elected));
        if (call->services().controller_calls.ask_next(call, elected.error())) return;
        const auto failed = all_failed(asked, elected.error());
        auto response = to_wire(failed);
        response.error_code = broker::to_wire(elected.error().code);
        call->answer(response);
    };
    controller.elect_leaders(std::move(elect), {&home, std::move(done)});
}

}  // namespace kaas::broker
