#include "broker/handlers/sync_group.h"

#include "broker/handlers/group_calls.h"

#include <cstdint>
#include <utility>

namespace kaas::broker {
namespace {

using wire::ErrorCode;

constexpr std::int16_t kProtocolFrom = 5;

void answer(Call& call, const coordinator::SyncGroupAnswer& from) {
    wire::SyncGroupResponse response;
    response.error_code = from.error;
    if (from.protocol_type) response.protocol_type = *from.protocol_type;
    if (from.protocol_name) response.protocol_name = *from.protocol_name;
    response.assignment = to_bytes(from.assignment);
    call.answer(response);
}

}  // namespace

void sync_group(CallPtr call, wire::SyncGroupRequest request) {
    // Apache `SyncGroupRequest.areMandatoryProtocolTypeAndNamePresent`.
    if (call->version() >= kProtocolFrom && (!request.protocol_type || !request.protocol_name)) {
        return answer(*call, {.error = ErrorCode::kInconsistentGroupProtocol});
    }
    if (request.group_id.empty()) return answer(*call, {.error = ErrorCode::kInvalidGroupId});
    coordinator::SyncGroupRequest asked{
        .group_id = base::to_utf8(request.group_id),
        .member = identity_of(request.member_id, request.group_instance_id),
        .generation = request.generation_id,
        .protocol_type = owned(request.protocol_type),
        .protocol_name = owned(request.protocol_name),
        .assignments = {}};
    for (const auto& one : request.assignments) {
        asked.assignments.push_back(
            {.member_id = base::to_utf8(one.member_id), .assignment = owned(one.assignment)});
    }
    const auto group_id = asked.group_id;
    ask_group<coordinator::SyncGroupAnswer>(
        *call, group_id,
        [asked = std::move(asked)](auto& slot, auto done) mutable {
            slot.sync(std::move(asked), std::move(done));
        },
        [call](const coordinator::SyncGroupAnswer& synced) { answer(*call, synced); });
}

}  // namespace kaas::broker
