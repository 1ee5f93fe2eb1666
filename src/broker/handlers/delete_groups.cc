#include "broker/handlers/delete_groups.h"

#include "broker/handlers/group_calls.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace kaas::broker {
namespace {

using coordinator::DeleteGroupsAnswer;
using wire::ErrorCode;

/// One request under way. Thread: the call's reactor.
struct Deleting {
    CallPtr call;
    wire::DeleteGroupsResponse response{};
    std::size_t open = 0;

    void take(std::size_t index, ErrorCode error) {
        response.results[index].error_code = error;
        if (--open == 0) call->answer(response);
    }
};

}  // namespace

void delete_groups(CallPtr call, wire::DeleteGroupsRequest request) {
    auto deleting = std::make_shared<Deleting>(Deleting{.call = call});
    // Twice named is once deleted.
    for (const auto& group : request.groups_names) {
        auto& results = deleting->response.results;
        const bool known = std::ranges::any_of(
            results, [&](const auto& result) { return result.group_id == group; });
        if (!known) results.emplace_back().group_id = group;
    }
    deleting->open = deleting->response.results.size();
    if (deleting->open == 0) return call->answer(deleting->response);
    for (std::size_t i = 0; i < deleting->response.results.size(); ++i) {
        const auto group_id = base::to_utf8(deleting->response.results[i].group_id);
        ask_group<DeleteGroupsAnswer>(
            *call, group_id,
            [group_id](auto& slot, auto done) { slot.delete_groups({group_id}, std::move(done)); },
            [deleting, i](const DeleteGroupsAnswer& answer) {
                deleting->take(i, answer.front().error);
            },
            [group_id](ErrorCode error) {
                return DeleteGroupsAnswer{{.group_id = group_id, .error = error}};
            });
    }
}

}  // namespace kaas::broker
