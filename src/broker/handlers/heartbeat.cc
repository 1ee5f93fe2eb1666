#include "broker/handlers/heartbeat.h"

#include "broker/handlers/group_calls.h"

#include <utility>

namespace kaas::broker {
namespace {

using wire::ErrorCode;

void answer(Call& call, ErrorCode error) {
    wire::HeartbeatResponse response;
    response.error_code = error;
    call.answer(response);
}

}  // namespace

void heartbeat(CallPtr call, wire::HeartbeatRequest request) {
    if (request.group_id.empty()) return answer(*call, ErrorCode::kInvalidGroupId);
    coordinator::HeartbeatRequest asked{
        .group_id = base::to_utf8(request.group_id),
        .member = identity_of(request.member_id, request.group_instance_id),
        .generation = request.generation_id};
    const auto group_id = asked.group_id;
    ask_group<ErrorCode>(
        *call, group_id,
        [asked = std::move(asked)](auto& slot, auto done) {
            slot.heartbeat(asked, std::move(done));
        },
        [call](ErrorCode error) { answer(*call, error); },
        // A member of a group that is still being loaded has no reason to leave it (Apache
        // `GroupCoordinatorService.heartbeat`).
        [](ErrorCode error) {
            return error == ErrorCode::kCoordinatorLoadInProgress ? ErrorCode::kNone : error;
        });
}

}  // namespace kaas::broker
