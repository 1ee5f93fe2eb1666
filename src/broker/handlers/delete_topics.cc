#include "broker/handlers/delete_topics.h"

#include "broker/controller_calls.h"
#include "broker/errors.h"
#include "cluster/admin.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace kaas::broker {
namespace {

using wire::ErrorCode;
using Wanted = std::variant<std::string, base::TopicId>;
using Result = wire::DeleteTopicsResponse::DeletableTopicResult;

constexpr std::int16_t kByIdFrom = 6;

/// What was asked for, or why it cannot be: a topic is named, or given by id, never both or
/// neither.
struct Asked {
    std::vector<Wanted> good;
    std::vector<Result> refused;
};

Asked sort_out(const Call& call, const wire::DeleteTopicsRequest& request) {
    Asked asked;
    if (call.version() < kByIdFrom) {
        for (const auto& name : request.topic_names) asked.good.emplace_back(name.str());
        return asked;
    }
    for (const auto& topic : request.topics) {
        bool by_id = !topic.topic_id.is_zero();
        if (by_id == topic.name.has_value()) {
            auto& out = asked.refused.emplace_back();
            out.name = topic.name;
            out.topic_id = topic.topic_id;
            out.error_code = ErrorCode::kInvalidRequest;
            std::string_view why = by_id ? "A topic is given by its name or its id, not by both."
                                         : "Neither a topic's name nor its id was given.";
            out.error_message = wire::String(why);
        } else if (by_id) {
            asked.good.emplace_back(base::TopicId{topic.topic_id});
        } else {
            asked.good.emplace_back(topic.name->str());
        }
    }
    return asked;
}

Result to_wire(const cluster::DeletedTopic& deleted) {
    Result out;
    out.name = std::nullopt;
    if (deleted.name) out.name = *deleted.name;
    out.topic_id = deleted.id.uuid;
    if (!deleted.outcome) {
        out.error_code = broker::to_wire(deleted.outcome.error().code);
        out.error_message = deleted.outcome.error().context;
    }
    return out;
}

Result refused(const Wanted& wanted, ErrorCode error, const std::string& why) {
    Result out;
    out.name = std::nullopt;
    if (const auto* name = std::get_if<std::string>(&wanted)) out.name = *name;
    if (const auto* id = std::get_if<base::TopicId>(&wanted)) out.topic_id = id->uuid;
    out.error_code = error;
    out.error_message = why;
    return out;
}

}  // namespace

void delete_topics(CallPtr call, wire::DeleteTopicsRequest request) {
    Asked asked = sort_out(*call, request);
    if (!call->services().config.settings.delete_topic_enable) {
        for (const auto& wanted : asked.good) {
            asked.refused.push_back(refused(wanted, ErrorCode::kTopicDeletionDisabled,
                                            "delete.topic.enable is false."));
        }
        wire::DeleteTopicsResponse response;
        response.responses = std::move(asked.refused);
        return call->answer(response);
    }
    cluster::DeleteTopics remove;
    remove.attempt = call->attempt();
    remove.deadline = call->services().clock.now() + std::chrono::milliseconds(request.timeout_ms);
    remove.topics = asked.good;
    auto& home = call->home();
    auto& controller = call->services().node.controller();
    auto done = [call = std::move(call), asked = std::move(asked)](
                    cluster::Result<std::vector<cluster::DeletedTopic>> deleted) mutable {
        if (!deleted && call->services().controller_calls.ask_next(call, deleted.error())) return;
        wire::DeleteTopicsResponse response;
        response.responses = std::move(asked.refused);
        if (deleted) {
            for (const auto& topic : *deleted) response.responses.push_back(to_wire(topic));
        } else {
            for (const auto& wanted : asked.good) {
                response.responses.push_back(refused(wanted, broker::to_wire(deleted.error().code),
                                                     deleted.error().context));
            }
        }
        call->answer(response);
    };
    controller.delete_topics(std::move(remove), {&home, std::move(done)});
}

}  // namespace kaas::broker
