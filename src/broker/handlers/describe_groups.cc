#include "broker/handlers/describe_groups.h"

#include "broker/handlers/group_calls.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace kaas::broker {
namespace {

using coordinator::DescribedGroup;
using coordinator::DescribeGroupsAnswer;
using wire::ErrorCode;
using Answered = wire::DescribeGroupsResponse::DescribedGroup;

constexpr std::int16_t kNotFoundFrom = 6;
/// READ, DELETE, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS (Apache `AclEntry.supportedOperations`
/// of a group).
constexpr std::int32_t kAllGroupOperations = 1 << 3 | 1 << 6 | 1 << 8 | 1 << 10 | 1 << 11;

/// One request under way. Thread: the call's reactor.
struct Describing {
    CallPtr call;
    bool with_operations;
    wire::DescribeGroupsResponse response{};
    std::size_t open = 0;

    void take(std::size_t index, const DescribedGroup& group) {
        auto& out = response.groups[index];
        out.group_id = group.group_id;
        out.group_state = group.state;
        out.protocol_type = group.protocol_type;
        out.protocol_data = group.protocol;
        out.error_code = group.error;
        if (group.error == ErrorCode::kGroupIdNotFound) tell_not_found(group, out);
        for (const auto& member : group.members) {
            auto& one = out.members.emplace_back();
            one.member_id = member.member.member_id;
            if (member.member.group_instance_id) {
                one.group_instance_id = *member.member.group_instance_id;
            }
            one.client_id = member.client_id;
            one.client_host = member.client_host;
            one.member_metadata = to_bytes(member.metadata);
            one.member_assignment = to_bytes(member.assignment);
        }
        if (with_operations && out.error_code == ErrorCode::kNone) {
            out.authorized_operations = kAllGroupOperations;
        }
        if (--open == 0) call->answer(response);
    }

    void tell_not_found(const DescribedGroup& group, Answered& out) const {
        if (call->version() < kNotFoundFrom) {
            out.error_code = ErrorCode::kNone;
        } else {
            out.error_message = "Group " + group.group_id + " not found.";
        }
    }
};

}  // namespace

void describe_groups(CallPtr call, wire::DescribeGroupsRequest request) {
    auto describing = std::make_shared<Describing>(
        Describing{.call = call, .with_operations = request.include_authorized_operations});
    describing->open = request.groups.size();
    describing->response.groups.resize(request.groups.size());
    if (request.groups.empty()) return call->answer(describing->response);
    for (std::size_t i = 0; i < request.groups.size(); ++i) {
        const auto group_id = base::to_utf8(request.groups[i]);
        ask_group<DescribeGroupsAnswer>(
            *call, group_id,
            [group_id](auto& slot, auto done) { slot.describe({group_id}, std::move(done)); },
            [describing, i](const DescribeGroupsAnswer& answer) {
                describing->take(i, answer.front());
            },
            [group_id](ErrorCode error) {
                return DescribeGroupsAnswer{{.error = error, .group_id = group_id, .state = {}}};
            });
    }
}

}  // namespace kaas::broker
