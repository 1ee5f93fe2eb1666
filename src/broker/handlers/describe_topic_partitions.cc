#include "broker/handlers/describe_topic_partitions.h"

#include "broker/handlers/cluster_view.h"
#include "catalog/image.h"
#include "catalog/topic_name.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

namespace kaas::broker {
namespace {

using Request = wire::DescribeTopicPartitionsRequest;
using Response = wire::DescribeTopicPartitionsResponse;
using Topic = Response::DescribeTopicPartitionsResponseTopic;
using Names = std::set<std::string_view>;

Names wanted_names(const Request& request, const catalog::Image& image) {
    Names names;
    for (const auto& topic : request.topics) names.insert(topic.name);
    if (names.empty()) {
        image.for_each_topic([&](const catalog::Topic& topic) { names.insert(topic.name); });
    }
    return names;
}

bool cursor_is_wrong(const Request& request, const Names& names) {
    if (!request.cursor) return false;
    // When all topics are asked for, the cursor's own may have gone since.
    bool must_be_named = !request.topics.empty();
    return request.cursor->partition_index < 0 ||
           (must_be_named && !names.contains(request.cursor->topic_name));
}

Topic describe_missing(std::string_view name) {
    Topic out;
    out.name = name;
    out.topic_authorized_operations = kAllTopicOperations;
    out.error_code = catalog::topic_name_fault(name).empty()
                         ? wire::ErrorCode::kUnknownTopicOrPartition
                         : wire::ErrorCode::kInvalidTopicException;
    return out;
}

/// The partitions of `topic` from `first` on, at most `room`; `room` is what is left after.
Topic describe(const Call& call, const catalog::Image& image, const catalog::Topic& topic,
               std::size_t first, std::size_t& room) {
    Topic out;
    out.name = topic.name;
    out.topic_id = topic.id.uuid;
    out.is_internal = catalog::is_internal_topic(topic.name);
    out.topic_authorized_operations = kAllTopicOperations;
    const auto away = call.services().node.away();
    for (std::size_t i = first; i < topic.partitions.size() && room > 0; ++i, --room) {
        PartitionView view = view_of(image, topic.partitions[i], call.peer().listener, *away);
        auto& partition = out.partitions.emplace_back();
        partition.error_code = view.error;
        partition.partition_index = static_cast<std::int32_t>(i);
        partition.leader_id = view.leader.value();
        partition.leader_epoch = view.leader_epoch.value();
        partition.replica_nodes = std::move(view.replicas);
        partition.isr_nodes = std::move(view.in_sync);
        partition.eligible_leader_replicas.emplace();
        partition.last_known_elr.emplace();
        partition.offline_replicas = std::move(view.offline);
    }
    return out;
}

}  // namespace

Response describe_topic_partitions(const Call& call, const Request& request) {
    const catalog::Image& image = call.state().partitions.image();
    Names names = wanted_names(request, image);
    Response response;
    if (cursor_is_wrong(request, names)) {
        for (auto name : names) {
            auto& topic = response.topics.emplace_back();
            topic.name = name;
            topic.error_code = wire::ErrorCode::kInvalidRequest;
        }
        return response;
    }
    auto limit = std::min(request.response_partition_limit,
                          call.services().config.settings.max_request_partition_size_limit);
    auto room = static_cast<std::size_t>(std::max(limit, 1));
    std::string_view start = request.cursor ? request.cursor->topic_name.view() : "";
    for (auto at = names.lower_bound(start); at != names.end(); ++at) {
        bool resumed = request.cursor && *at == start;
        std::size_t first = resumed ? static_cast<std::size_t>(request.cursor->partition_index) : 0;
        if (room == 0) {
            response.next_cursor.emplace();
            response.next_cursor->topic_name = *at;
            response.next_cursor->partition_index = 0;
            break;
        }
        const catalog::Topic* topic = image.topic(*at);
        if (topic == nullptr) {
            response.topics.push_back(describe_missing(*at));
            continue;
        }
        response.topics.push_back(describe(call, image, *topic, first, room));
        std::size_t next = first + response.topics.back().partitions.size();
        if (next < topic->partitions.size()) {
            response.next_cursor.emplace();
            response.next_cursor->topic_name = topic->name;
            response.next_cursor->partition_index = static_cast<std::int32_t>(next);
            break;
        }
    }
    return response;
}

}  // namespace kaas::broker
