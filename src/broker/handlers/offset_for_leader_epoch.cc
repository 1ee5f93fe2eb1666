#include "broker/handlers/offset_for_leader_epoch.h"

#include "broker/errors.h"
#include "broker/handlers/partition_access.h"
#include "storage/partition_log.h"

#include <string_view>

namespace kaas::broker {
namespace {

using Asked = wire::OffsetForLeaderEpochRequest::OffsetForLeaderPartition;
using Answer = wire::OffsetForLeaderEpochResponse::EpochEndOffset;

Answer end_of(const Call& call, std::string_view topic, const Asked& asked) {
    Answer out;
    out.partition = asked.partition;
    auto log = led_log(call, TopicRef::named(topic), asked.partition);
    if (!log) {
        out.error_code = log.error();
        return out;
    }
    auto end =
        (*log)->end_of_epoch(base::LeaderEpoch(asked.leader_epoch), asked.current_leader_epoch);
    if (!end) {
        out.error_code = to_wire(end.error().code);
        return out;
    }
    out.leader_epoch = end->epoch.value();
    out.end_offset = end->offset.value();
    return out;
}

}  // namespace

wire::OffsetForLeaderEpochResponse offset_for_leader_epoch(
    const Call& call, const wire::OffsetForLeaderEpochRequest& request) {
    wire::OffsetForLeaderEpochResponse response;
    for (const auto& asked : request.topics) {
        auto& topic = response.topics.emplace_back();
        topic.topic = asked.topic;
        for (const auto& partition : asked.partitions) {
            topic.partitions.push_back(end_of(call, asked.topic, partition));
        }
    }
    return response;
}

}  // namespace kaas::broker
