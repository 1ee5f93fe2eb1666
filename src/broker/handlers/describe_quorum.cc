#include "broker/handlers/describe_quorum.h"

#include "base/ids.h"
#include "catalog/image.h"
#include "catalog/model.h"
#include "cluster/node.h"
#include "cluster/roll_call.h"
#include "wire/error_code.h"

#include <cstdint>
#include <string_view>

namespace kaas::broker {
namespace {

using W = wire::ErrorCode;

constexpr std::int16_t kNodesFrom = 2;  // KIP-853
constexpr std::string_view kTopic = "__cluster_metadata";
// Apache `Errors`.
constexpr std::string_view kUnknown = "This server does not host this topic-partition.";
constexpr std::string_view kNotLeader =
    "For requests intended only for the leader, this error indicates that the broker is not the "
    "current leader. For requests intended for any replica, this error indicates that the broker "
    "is "
    "not a replica of the topic partition.";

bool asks_for_the_log(const wire::DescribeQuorumRequest& request) {
    if (request.topics.size() != 1 || request.topics.front().topic_name.view() != kTopic)
        return false;
    const auto& partitions = request.topics.front().partitions;
    return partitions.size() == 1 && partitions.front().partition_index == 0;
}

wire::DescribeQuorumResponse unknown_partitions(const wire::DescribeQuorumRequest& request) {
    wire::DescribeQuorumResponse response;
    for (const auto& topic : request.topics) {
        auto& out = response.topics.emplace_back();
        out.topic_name = topic.topic_name;
        for (const auto& partition : topic.partitions) {
            auto& answer = out.partitions.emplace_back();
            answer.partition_index = partition.partition_index;
            answer.error_code = W::kUnknownTopicOrPartition;
            answer.error_message = wire::String(kUnknown);
        }
    }
    return response;
}

/// As the controller's broker sees it; Apache's leader counts itself as heard just now, too.
wire::DescribeQuorumResponse::ReplicaState state_of(const cluster::RollCall::Sight& sight,
                                                    const catalog::Image& image,
                                                    std::int64_t now_ms) {
    wire::DescribeQuorumResponse::ReplicaState out;
    const bool follows = sight.has.epoch == image.version().epoch;
    const bool is_leader = sight.broker == image.controller();
    out.replica_id = sight.broker.value();
    out.log_end_offset = follows ? static_cast<std::int64_t>(sight.has.changes) : -1;
    out.last_fetch_timestamp = is_leader ? now_ms : now_ms - sight.silent.count();
    const bool has_all = sight.has >= image.version();
    out.last_caught_up_timestamp = has_all ? out.last_fetch_timestamp : -1;
    return out;
}

void add_node(wire::DescribeQuorumResponse& response, const catalog::Broker& broker) {
    auto& node = response.nodes.emplace_back();
    node.node_id = broker.id.value();
    for (const auto& endpoint : broker.endpoints) {
        auto& listener = node.listeners.emplace_back();
        listener.name = endpoint.listener;
        listener.host = endpoint.host;
        listener.port = endpoint.port;
    }
}

}  // namespace

wire::DescribeQuorumResponse describe_quorum(const Call& call,
                                             const wire::DescribeQuorumRequest& request) {
    if (!asks_for_the_log(request)) return unknown_partitions(request);
    wire::DescribeQuorumResponse response;
    auto& topic = response.topics.emplace_back();
    topic.topic_name = wire::String(kTopic);
    auto& partition = topic.partitions.emplace_back();
    auto& node = call.services().node;
    if (!node.controller().reigning()) {
        partition.error_code = W::kNotLeaderOrFollower;
        partition.error_message = wire::String(kNotLeader);
        return response;
    }
    const auto image = node.roll_call().image();
    const auto now_ms = call.services().clock.wall_ms();
    partition.leader_id = image->controller().value();
    partition.leader_epoch = image->version().epoch.value();
    partition.high_watermark = static_cast<std::int64_t>(image->version().changes);
    for (const auto& sight : node.roll_call().sights()) {
        const auto* broker = image->broker(sight.broker);
        if (broker == nullptr || !broker->living()) continue;
        auto& list = broker->draining ? partition.observers : partition.current_voters;
        list.push_back(state_of(sight, *image, now_ms));
        if (!broker->draining && call.version() >= kNodesFrom) add_node(response, *broker);
    }
    return response;
}

}  // namespace kaas::broker
