#include "broker/handlers/list_groups.h"

#include "broker/handlers/group_calls.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <memory>
#include <utility>

namespace kaas::broker {
namespace {

using coordinator::ListGroupsAnswer;
using wire::ErrorCode;

void answer(Call& call, const ListGroupsAnswer& from) {
    wire::ListGroupsResponse response;
    response.error_code = from.error;
    for (const auto& group : from.groups) {
        auto& out = response.groups.emplace_back();
        out.group_id = group.group_id;
        out.protocol_type = group.protocol_type;
        out.group_state = group.state;
        out.group_type = group.type;
    }
    call.answer(response);
}

/// One request under way. Thread: the coordinators' loop.
struct Listing {
    CallPtr call;
    ListGroupsAnswer all{};
    std::size_t open = 0;

    void take(ListGroupsAnswer one) {
        // With an error there is nothing else.
        if (one.error != ErrorCode::kNone) all = {.error = one.error};
        if (all.error == ErrorCode::kNone) {
            std::ranges::move(one.groups, std::back_inserter(all.groups));
        }
        if (--open == 0) finish();
    }
    void finish() {
        call->home().post([call = call, all = std::move(all)] { answer(*call, all); });
    }
};

}  // namespace

void list_groups(CallPtr call, wire::ListGroupsRequest request) {
    coordinator::ListGroupsRequest asked;
    for (const auto& state : request.states_filter) asked.states.push_back(base::to_utf8(state));
    for (const auto& type : request.types_filter) asked.types.push_back(base::to_utf8(type));
    auto listing = std::make_shared<Listing>(Listing{.call = call});
    call->services().coordination.with_all_groups(
        call->state().partitions.image(), [listing, asked = std::move(asked)](auto slots) {
            if (!slots) {
                listing->all.error = slots.error();
                return listing->finish();
            }
            listing->open = slots->size();
            if (slots->empty()) return listing->finish();
            for (auto* slot : *slots) {
                slot->list(asked,
                           [listing](ListGroupsAnswer one) { listing->take(std::move(one)); });
            }
        });
}

}  // namespace kaas::broker
