#include "broker/handlers/join_group.h"

#include "broker/handlers/group_calls.h"

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

namespace kaas::broker {
namespace {

using std::chrono::milliseconds;
using wire::ErrorCode;

constexpr std::int16_t kNullableProtocolNameFrom = 7;

void answer(Call& call, const coordinator::JoinGroupAnswer& from) {
    wire::JoinGroupResponse response;
    response.error_code = from.error;
    response.generation_id = from.generation;
    if (from.protocol_type) response.protocol_type = *from.protocol_type;
    response.protocol_name.reset();
    if (from.protocol_name && !from.protocol_name->empty()) {
        response.protocol_name = *from.protocol_name;
    } else if (call.version() < kNullableProtocolNameFrom) {
        response.protocol_name.emplace();
    }
    response.leader = from.leader;
    response.skip_assignment = from.skip_assignment;
    response.member_id = from.member_id;
    for (const auto& member : from.members) {
        auto& out = response.members.emplace_back();
        out.member_id = member.member.member_id;
        if (member.member.group_instance_id) {
            out.group_instance_id = *member.member.group_instance_id;
        }
        out.metadata = to_bytes(member.metadata);
    }
    call.answer(response);
}

ErrorCode fault_of(const Call& call, const wire::JoinGroupRequest& request) {
    if (request.group_id.empty()) return ErrorCode::kInvalidGroupId;
    const auto& settings = call.services().config.settings;
    const milliseconds session(request.session_timeout_ms);
    const bool in_bounds = session >= settings.group_min_session_timeout_ms &&
                           session <= settings.group_max_session_timeout_ms;
    return in_bounds ? ErrorCode::kNone : ErrorCode::kInvalidSessionTimeout;
}

}  // namespace

void join_group(CallPtr call, wire::JoinGroupRequest request) {
    if (const auto fault = fault_of(*call, request); fault != ErrorCode::kNone) {
        return answer(*call, {.error = fault, .member_id = base::to_utf8(request.member_id)});
    }
    coordinator::JoinGroupRequest asked{
        .client = {.version = call->version(),
                   .client_id = base::to_utf8(call->header().client_id.value_or("")),
                   .client_host = "/" + call->peer().address},
        .group_id = base::to_utf8(request.group_id),
        .member = identity_of(request.member_id, request.group_instance_id),
        .session_timeout = milliseconds(request.session_timeout_ms),
        // Before version 1 there was but one timeout.
        .rebalance_timeout = milliseconds(call->version() == 0 ? request.session_timeout_ms
                                                               : request.rebalance_timeout_ms),
        .protocol_type = base::to_utf8(request.protocol_type),
        .protocols = {},
        .reason = owned(request.reason)};
    for (const auto& protocol : request.protocols) {
        asked.protocols.push_back(
            {.name = base::to_utf8(protocol.name), .metadata = owned(protocol.metadata)});
    }
    const auto group_id = asked.group_id;
    ask_group<coordinator::JoinGroupAnswer>(
        *call, group_id,
        [asked = std::move(asked)](auto& slot, auto done) mutable {
            slot.join(std::move(asked), std::move(done));
        },
        [call](const coordinator::JoinGroupAnswer& joined) { answer(*call, joined); });
}

}  // namespace kaas::broker
