#include "broker/handlers/create_topics.h"

#include "broker/controller_calls.h"
#include "broker/errors.h"
#include "broker/handlers/config_layers.h"
#include "cluster/admin.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kaas::broker {
namespace {

using Result = wire::CreateTopicsResponse::CreatableTopicResult;

cluster::NewTopic to_new_topic(const wire::CreateTopicsRequest::CreatableTopic& asked) {
    cluster::NewTopic topic;
    topic.name = asked.name.str();
    topic.partitions = asked.num_partitions;
    topic.replication_factor = asked.replication_factor;
    for (const auto& row : asked.assignments) {
        auto& assignment = topic.assignments.emplace_back();
        assignment.index = row.partition_index;
        for (auto id : row.broker_ids) assignment.brokers.emplace_back(id);
    }
    for (const auto& config : asked.configs) {
        std::optional<std::string> value;
        if (config.value) value = config.value->str();
        topic.configs.emplace_back(config.name.str(), std::move(value));
    }
    return topic;
}

void add_configs(const Call& call, const cluster::CreatedTopic& created, Result& out) {
    auto rows = describe_topic_configs(call.services(), created.configs, {});
    if (!rows) return;  // the controller has checked them: cannot be
    for (const auto& row : *rows) {
        auto& config = out.configs->emplace_back();
        config.name = row.name;
        config.value = row.value ? std::optional<wire::String>(*row.value) : std::nullopt;
        config.read_only = row.read_only;
        config.config_source = static_cast<std::int8_t>(row.source);
        config.is_sensitive = row.sensitive;
    }
}

Result to_wire(const Call& call, const cluster::CreatedTopic& created) {
    Result out;
    out.name = created.name;
    out.error_message = std::nullopt;
    if (!created.outcome) {
        out.error_code = broker::to_wire(created.outcome.error().code);
        out.error_message = created.outcome.error().context;
        return out;
    }
    out.topic_id = created.id.uuid;
    out.num_partitions = created.partitions;
    out.replication_factor = created.replication_factor;
    add_configs(call, created, out);
    return out;
}

/// The controller itself could not answer: every topic gets its reason.
void answer_refused(Call& call, const wire::CreateTopicsRequest& request,
                    const cluster::Error& error) {
    wire::CreateTopicsResponse response;
    for (const auto& asked : request.topics) {
        auto& out = response.topics.emplace_back();
        out.name = asked.name;
        out.error_code = broker::to_wire(error.code);
        out.error_message = error.context;
    }
    call.answer(response);
}

}  // namespace

void create_topics(CallPtr call, wire::CreateTopicsRequest request) {
    cluster::CreateTopics create;
    create.attempt = call->attempt();
    create.validate_only = request.validate_only;
    create.deadline = call->services().clock.now() + std::chrono::milliseconds(request.timeout_ms);
    for (const auto& asked : request.topics) create.topics.push_back(to_new_topic(asked));
    auto& home = call->home();
    auto& controller = call->services().node.controller();
    auto done = [call = std::move(call), request = std::move(request)](
                    cluster::Result<std::vector<cluster::CreatedTopic>> created) {
        if (!created && call->services().controller_calls.ask_next(call, created.error())) return;
        if (!created) return answer_refused(*call, request, created.error());
        wire::CreateTopicsResponse response;
        for (const auto& topic : *created) response.topics.push_back(to_wire(*call, topic));
        call->answer(response);
    };
    controller.create_topics(std::move(create), {&home, std::move(done)});
}

}  // namespace kaas::broker
