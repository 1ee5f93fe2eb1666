#include "broker/handlers/offset_commit.h"

#include "base/ids.h"
#include "broker/handlers/group_calls.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace kaas::broker {
namespace {

using wire::ErrorCode;
using Answer = coordinator::OffsetCommitAnswer;
using Outcomes = TopicOutcomes<wire::OffsetCommitResponse::OffsetCommitResponseTopic>;

constexpr std::int16_t kByIdFrom = 10;

/// One request under way. Thread: the call's reactor.
struct Committing {
    explicit Committing(CallPtr of)
        : call(std::move(of)), outcomes(response.topics, call->version() >= kByIdFrom) {}

    CallPtr call;
    wire::OffsetCommitResponse response;
    Outcomes outcomes;
};

coordinator::CommitPartition to_commit(
    const wire::OffsetCommitRequest::OffsetCommitRequestPartition& asked) {
    return {.partition = base::PartitionId(asked.partition_index),
            .offset = base::Offset(asked.committed_offset),
            .leader_epoch = asked.committed_leader_epoch,
            .metadata = owned(asked.committed_metadata)};
}

}  // namespace

void offset_commit(CallPtr call, wire::OffsetCommitRequest request) {
    auto committing = std::make_shared<Committing>(call);
    coordinator::OffsetCommitRequest asked{
        .version = call->version(),
        .group_id = base::to_utf8(request.group_id),
        .member = identity_of(request.member_id, request.group_instance_id),
        .generation = request.generation_id_or_member_epoch,
        .topics = {}};
    if (request.retention_time_ms != -1) {
        asked.retention = std::chrono::milliseconds(request.retention_time_ms);
    }
    for (const auto& topic : request.topics) {
        coordinator::CommitTopic out;
        sort_out(*call, topic, call->version() >= kByIdFrom, committing->outcomes,
                 [&](const catalog::Topic& found, const auto& partition) {
                     out.id = found.id;
                     out.name = found.name;
                     out.partitions.push_back(to_commit(partition));
                 });
        if (!out.partitions.empty()) asked.topics.push_back(std::move(out));
    }
    if (asked.topics.empty()) return call->answer(committing->response);

    // What is asked goes to the loop; who is refused there has it here.
    const auto group_id = asked.group_id;
    auto shared = std::make_shared<coordinator::OffsetCommitRequest>(std::move(asked));
    ask_group<Answer>(
        *call, group_id,
        [shared](auto& slot, auto done) { slot.commit(std::move(*shared), std::move(done)); },
        [committing](const Answer& answer) {
            committing->outcomes.add(answer.topics);
            committing->call->answer(committing->response);
        },
        [shared](ErrorCode error) { return coordinator::all_with(shared->topics, error); });
}

}  // namespace kaas::broker
