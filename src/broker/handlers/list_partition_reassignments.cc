#include "broker/handlers/list_partition_reassignments.h"

#include "base/ids.h"
#include "broker/controller_calls.h"
#include "broker/errors.h"
#include "cluster/admin.h"

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace kaas::broker {
namespace {

std::vector<std::int32_t> numbers(const std::vector<base::BrokerId>& brokers) {
    std::vector<std::int32_t> ids;
    ids.reserve(brokers.size());
    for (auto id : brokers) ids.push_back(id.value());
    return ids;
}

}  // namespace

void list_partition_reassignments(CallPtr call, wire::ListPartitionReassignmentsRequest request) {
    cluster::ListReassignments wanted;
    if (request.topics) {
        wanted.topics.emplace();
        for (const auto& topic : *request.topics) {
            wanted.topics->push_back({topic.name.str(), topic.partition_indexes});
        }
    }
    auto& home = call->home();
    auto& controller = call->services().node.controller();
    auto done = [call = std::move(call)](
                    cluster::Result<std::vector<cluster::OngoingReassignments>> listed) {
        if (!listed && call->services().controller_calls.ask_next(call, listed.error())) return;
        wire::ListPartitionReassignmentsResponse response;
        response.error_message = std::nullopt;
        if (!listed) {
            response.error_code = to_wire(listed.error().code);
            response.error_message = listed.error().context;
            return call->answer(response);
        }
        for (const auto& topic : *listed) {
            auto& out = response.topics.emplace_back();
            out.name = topic.topic;
            for (const auto& one : topic.partitions) {
                auto& partition = out.partitions.emplace_back();
                partition.partition_index = one.partition;
                partition.replicas = numbers(one.replicas);
                partition.adding_replicas = numbers(one.adding);
                partition.removing_replicas = numbers(one.removing);
            }
        }
        call->answer(response);
    };
    controller.list_reassignments(std::move(wanted), {&home, std::move(done)});
}

}  // namespace kaas::broker
