#include "broker/handlers/leave_group.h"

#include "broker/handlers/group_calls.h"

#include <cstdint>
#include <utility>

namespace kaas::broker {
namespace {

using wire::ErrorCode;

constexpr std::int16_t kMembersFrom = 3;

void answer(Call& call, const coordinator::LeaveGroupAnswer& from) {
    wire::LeaveGroupResponse response;
    response.error_code = from.error;
    if (call.version() < kMembersFrom) {
        if (from.error == ErrorCode::kNone && !from.members.empty()) {
            response.error_code = from.members.front().error;
        }
        return call.answer(response);
    }
    for (const auto& member : from.members) {
        auto& out = response.members.emplace_back();
        out.member_id = member.identity.member_id;
        out.group_instance_id.reset();
        if (member.identity.group_instance_id) {
            out.group_instance_id = *member.identity.group_instance_id;
        }
        out.error_code = member.error;
    }
    call.answer(response);
}

}  // namespace

void leave_group(CallPtr call, wire::LeaveGroupRequest request) {
    if (request.group_id.empty()) return answer(*call, {.error = ErrorCode::kInvalidGroupId});
    coordinator::LeaveGroupRequest asked{.group_id = base::to_utf8(request.group_id),
                                         .members = {}};
    if (call->version() < kMembersFrom) {
        asked.members.push_back({.identity = identity_of(request.member_id, {})});
    }
    for (const auto& member : request.members) {
        asked.members.push_back(
            {.identity = identity_of(member.member_id, member.group_instance_id),
             .reason = owned(member.reason)});
    }
    const auto group_id = asked.group_id;
    ask_group<coordinator::LeaveGroupAnswer>(
        *call, group_id,
        [asked = std::move(asked)](auto& slot, auto done) mutable {
            slot.leave(std::move(asked), std::move(done));
        },
        [call](const coordinator::LeaveGroupAnswer& left) { answer(*call, left); });
}

}  // namespace kaas::broker
