#include "broker/handlers/offset_delete.h"

#include "base/ids.h"
#include "broker/handlers/group_calls.h"
#include "catalog/model.h"

#include <memory>
#include <utility>

namespace kaas::broker {
namespace {

using coordinator::OffsetDeleteAnswer;
using wire::ErrorCode;

}  // namespace

void offset_delete(CallPtr call, wire::OffsetDeleteRequest request) {
    auto response = std::make_shared<wire::OffsetDeleteResponse>();
    TopicOutcomes outcomes(response->topics);
    coordinator::OffsetDeleteRequest asked{.group_id = base::to_utf8(request.group_id),
                                           .topics = {}};
    for (const auto& topic : request.topics) {
        coordinator::OffsetDeleteRequest::Topic out;
        sort_out(*call, topic, false, outcomes,
                 [&](const catalog::Topic& found, const auto& partition) {
                     out.name = found.name;
                     out.partitions.emplace_back(partition.partition_index);
                 });
        if (!out.partitions.empty()) asked.topics.push_back(std::move(out));
    }
    auto answer = [call, response](const OffsetDeleteAnswer& from) {
        response->error_code = from.error;
        // A group that refuses has nothing to say about single partitions.
        if (from.error != ErrorCode::kNone) response->topics.clear();
        TopicOutcomes(response->topics).add(from.topics);
        call->answer(*response);
    };
    if (asked.group_id.empty()) return answer({.error = ErrorCode::kInvalidGroupId});
    const auto group_id = asked.group_id;
    ask_group<OffsetDeleteAnswer>(
        *call, group_id,
        [asked = std::move(asked)](auto& slot, auto done) mutable {
            slot.delete_offsets(std::move(asked), std::move(done));
        },
        std::move(answer));
}

}  // namespace kaas::broker
