#include "broker/handlers/list_groups.h"

#include "base/utf8.h"
#include "broker/handlers/slot_calls.h"
#include "coordinator/group_requests.h"
#include "coordinator/group_slot.h"

#include <expected>
#include <utility>

namespace kaas::broker {
namespace {

using coordinator::ListedGroup;

void answer(Call& call, const Listed<ListedGroup>& groups) {
    wire::ListGroupsResponse response;
    if (!groups) {
        response.error_code = groups.error();
        return call.answer(response);
    }
    for (const auto& group : *groups) {
        auto& out = response.groups.emplace_back();
        out.group_id = group.group_id;
        out.protocol_type = group.protocol_type;
        out.group_state = group.state;
        out.group_type = group.type;
    }
    call.answer(response);
}

}  // namespace

void list_groups(CallPtr call, wire::ListGroupsRequest request) {
    coordinator::ListGroupsRequest asked;
    for (const auto& state : request.states_filter) asked.states.push_back(base::to_utf8(state));
    for (const auto& type : request.types_filter) asked.types.push_back(base::to_utf8(type));
    const auto list = [asked = std::move(asked)](auto& slot, auto done) {
        slot.list(asked, [done = std::move(done)](coordinator::ListGroupsAnswer one) mutable {
            if (one.error != wire::ErrorCode::kNone) return done(std::unexpected(one.error));
            done(std::move(one.groups));
        });
    };
    call->services().coordination.with_all_groups(
        call->state().partitions.image(),
        listing<ListedGroup>(*call, list,
                             [call](const Listed<ListedGroup>& groups) { answer(*call, groups); }));
}

}  // namespace kaas::broker
