#include "broker/handlers/metadata.h"

#include "base/log.h"
#include "broker/handlers/cluster_view.h"
#include "catalog/image.h"
#include "catalog/topic_name.h"
#include "cluster/admin.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

namespace kaas::broker {
namespace {

using wire::ErrorCode;
using Topic = wire::MetadataResponse::MetadataResponseTopic;

/// The names that this request has topics made for.
using ToCreate = std::vector<std::string>;

bool wants_all(const Call& call, const wire::MetadataRequest& request) {
    // Version 0 has no null: an empty list asks for everything.
    return !request.topics || (call.version() == 0 && request.topics->empty());
}

Topic describe(const Call& call, const catalog::Image& image, const catalog::Topic& topic,
               bool with_operations) {
    Topic out;
    out.name = topic.name;
    out.topic_id = topic.id.uuid;
    out.is_internal = catalog::is_internal_topic(topic.name);
    out.partitions.reserve(topic.partitions.size());
    std::int32_t index = 0;
    const auto away = call.services().node.away();
    for (const auto& partition : topic.partitions) {
        PartitionView view = view_of(image, partition, call.peer().listener, *away);
        out.partitions.push_back({.error_code = view.error,
                                  .partition_index = index++,
                                  .leader_id = view.leader.value(),
                                  .leader_epoch = view.leader_epoch.value(),
                                  .replica_nodes = std::move(view.replicas),
                                  .isr_nodes = std::move(view.in_sync),
                                  .offline_replicas = std::move(view.offline)});
    }
    if (with_operations) out.topic_authorized_operations = kAllTopicOperations;
    return out;
}

/// What is said of a name that no topic has; it may be noted for creation.
Topic describe_missing(const Call& call, const wire::MetadataRequest& request,
                       std::string_view name, ToCreate& to_create) {
    Topic out;
    out.name = name;
    if (!catalog::topic_name_fault(name).empty()) {
        out.error_code = ErrorCode::kInvalidTopicException;
        return out;
    }
    out.error_code = ErrorCode::kUnknownTopicOrPartition;
    out.is_internal = catalog::is_internal_topic(name);
    // Versions before 4 could not forbid it.
    bool asked = call.version() < 4 || request.allow_auto_topic_creation;
    if (asked && call.services().config.settings.auto_create_topics_enable)
        to_create.emplace_back(name);
    return out;
}

Topic describe_unknown_id(const base::Uuid& id) {
    Topic out;
    out.error_code = ErrorCode::kUnknownTopicId;
    out.name = std::nullopt;
    out.topic_id = id;
    return out;
}

/// Apache's order: ids that nobody knows, then topics, then names that nobody knows.
std::vector<Topic> describe_wanted(const Call& call, const wire::MetadataRequest& request,
                                   const catalog::Image& image, ToCreate& to_create) {
    std::vector<Topic> out;
    std::vector<Topic> found;
    std::vector<Topic> missing;
    std::unordered_set<std::string_view> seen;
    for (const auto& wanted : *request.topics) {
        bool by_id = !wanted.topic_id.is_zero();
        const catalog::Topic* topic =
            by_id ? image.topic(base::TopicId{wanted.topic_id}) : image.topic(*wanted.name);
        if (topic == nullptr && by_id) {
            out.push_back(describe_unknown_id(wanted.topic_id));
        } else if (!seen.insert(topic != nullptr ? topic->name : wanted.name->view()).second) {
            continue;
        } else if (topic != nullptr) {
            found.push_back(
                describe(call, image, *topic, request.include_topic_authorized_operations));
        } else {
            missing.push_back(describe_missing(call, request, *wanted.name, to_create));
        }
    }
    std::ranges::move(found, std::back_inserter(out));
    std::ranges::move(missing, std::back_inserter(out));
    return out;
}

std::vector<Topic> describe_all(const Call& call, const wire::MetadataRequest& request,
                                const catalog::Image& image) {
    std::vector<Topic> out;
    out.reserve(image.topic_count());
    image.for_each_topic([&](const catalog::Topic& topic) {
        out.push_back(describe(call, image, topic, request.include_topic_authorized_operations));
    });
    return out;
}

/// Nobody waits for it: the client asks again until the topic is there.
void create_in_background(const Call& call, ToCreate names) {
    cluster::CreateTopics create;
    for (auto& name : names) create.topics.emplace_back().name = std::move(name);
    cluster::Reply<std::vector<cluster::CreatedTopic>> reply{
        &call.home(), [](auto created) {
            if (!created) {
                base::log::warn("broker", "topics were not created: {}", created.error().context);
            }
        }};
    call.services().controller_calls.create_topics(std::move(create), std::move(reply));
}

/// Versions 10 and 11 could carry an id or a null name, but Apache takes neither before version 12.
bool asks_what_it_cannot(const Call& call, const wire::MetadataRequest& request) {
    if (wants_all(call, request)) return false;
    return std::ranges::any_of(*request.topics, [&](const auto& wanted) {
        bool by_id = !wanted.topic_id.is_zero();
        return call.version() < 12 ? by_id || !wanted.name : !by_id && !wanted.name;
    });
}

wire::MetadataResponse refuse(const wire::MetadataRequest& request) {
    wire::MetadataResponse response;
    for (const auto& wanted : *request.topics) {
        auto& topic = response.topics.emplace_back();
        topic.error_code = ErrorCode::kInvalidRequest;
        topic.name = wanted.name.value_or("");
        topic.topic_id = wanted.topic_id;
    }
    return response;
}

}  // namespace

wire::MetadataResponse metadata(const Call& call, const wire::MetadataRequest& request) {
    const catalog::Image& image = call.state().partitions.image();
    if (asks_what_it_cannot(call, request)) return refuse(request);
    wire::MetadataResponse response;
    for (const auto& [broker, endpoint] : brokers_on(image, call.peer().listener)) {
        auto& out = response.brokers.emplace_back();
        out.node_id = broker->id.value();
        out.host = endpoint->host;
        out.port = endpoint->port;
        if (broker->rack) out.rack = *broker->rack;
    }
    response.cluster_id = image.cluster_id();
    response.controller_id = image.controller().value();
    if (request.include_cluster_authorized_operations) {
        response.cluster_authorized_operations = kAllClusterOperations;
    }
    if (wants_all(call, request)) {
        response.topics = describe_all(call, request, image);
    } else {
        ToCreate to_create;
        response.topics = describe_wanted(call, request, image, to_create);
        if (!to_create.empty()) create_in_background(call, std::move(to_create));
    }
    return response;
}

}  // namespace kaas::broker
