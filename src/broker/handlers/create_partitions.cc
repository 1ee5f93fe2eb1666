#include "broker/handlers/create_partitions.h"

#include "broker/controller_calls.h"
#include "broker/errors.h"
#include "cluster/admin.h"

#include <chrono>
#include <expected>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

namespace kaas::broker {
namespace {

using Result = wire::CreatePartitionsResponse::CreatePartitionsTopicResult;

cluster::GrowTopic to_grow(const wire::CreatePartitionsRequest::CreatePartitionsTopic& asked) {
    cluster::GrowTopic grow;
    grow.name = asked.name.str();
    grow.count = asked.count;
    if (asked.assignments) {
        grow.assignments.emplace();
        for (const auto& row : *asked.assignments) {
            auto& brokers = grow.assignments->emplace_back();
            for (auto id : row.broker_ids) brokers.emplace_back(id);
        }
    }
    return grow;
}

Result to_wire(std::string_view name, const cluster::Result<void>& outcome) {
    Result out;
    out.name = name;
    if (!outcome) {
        out.error_code = broker::to_wire(outcome.error().code);
        out.error_message = outcome.error().context;
    }
    return out;
}

}  // namespace

void create_partitions(CallPtr call, wire::CreatePartitionsRequest request) {
    std::map<std::string_view, int> named;
    for (const auto& asked : request.topics) ++named[asked.name];
    cluster::CreatePartitions grow;
    grow.attempt = call->attempt();
    grow.validate_only = request.validate_only;
    grow.deadline = call->services().clock.now() + std::chrono::milliseconds(request.timeout_ms);
    std::vector<Result> twice;
    for (const auto& [name, times] : named) {
        if (times > 1) {
            twice.push_back(to_wire(name, cluster::fail(cluster::ErrorCode::kInvalidRequest,
                                                        "The topic is named twice.")));
        }
    }
    for (const auto& asked : request.topics) {
        if (named[asked.name] == 1) grow.topics.push_back(to_grow(asked));
    }
    auto& home = call->home();
    auto& controller = call->services().node.controller();
    auto names = grow.topics;
    auto done = [call = std::move(call), twice = std::move(twice), names = std::move(names)](
                    cluster::Result<std::vector<cluster::GrownTopic>> grown) mutable {
        if (!grown && call->services().controller_calls.ask_next(call, grown.error())) return;
        wire::CreatePartitionsResponse response;
        response.results = std::move(twice);
        if (grown) {
            for (const auto& topic : *grown) {
                response.results.push_back(to_wire(topic.name, topic.outcome));
            }
        } else {
            for (const auto& topic : names) {
                response.results.push_back(to_wire(topic.name, std::unexpected(grown.error())));
            }
        }
        call->answer(response);
    };
    controller.create_partitions(std::move(grow), {&home, std::move(done)});
}

}  // namespace kaas::broker
