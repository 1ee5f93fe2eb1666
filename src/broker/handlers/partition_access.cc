#include "broker/handlers/partition_access.h"

#include "broker/errors.h"
#include "catalog/slot.h"

#include <cstdint>
#include <expected>
#include <utility>

namespace kaas::broker {

using wire::ErrorCode;

namespace {

const catalog::Topic* find_topic(const catalog::Image& image, const TopicRef& topic) {
    return topic.by_id ? image.topic(base::TopicId{topic.id}) : image.topic(topic.name);
}

}  // namespace

const catalog::Topic* find_topic(const Call& call, const TopicRef& topic) {
    return find_topic(call.state().partitions.image(), topic);
}

bool is_away(const Call& call, const TopicRef& topic, std::int32_t partition) {
    if (!call.services().node.anything_away()) return false;
    const catalog::Topic* found = find_topic(call, topic);
    const auto* asked = found == nullptr ? nullptr : found->partition(base::PartitionId(partition));
    return asked != nullptr && call.services().node.away()->has(*asked);
}

std::expected<storage::LogPtr, ErrorCode> led_log(const Call& call, const TopicRef& topic,
                                                  std::int32_t partition) {
    if (is_away(call, topic, partition)) return std::unexpected(ErrorCode::kNotLeaderOrFollower);
    auto& partitions = call.state().partitions;
    base::PartitionId index(partition);
    cluster::Hosted hosted = topic.by_id ? partitions.find(base::TopicId{topic.id}, index)
                                         : partitions.find(topic.name, index);
    // One that is offline because its volume is full is read on; all else it refuses itself.
    if (hosted.log != nullptr) return std::move(hosted.log);
    const bool is_slot =
        hosted.state == cluster::Hosting::kNotHere && led_slot(call, topic, partition) != nullptr;
    if (is_slot) return std::unexpected(ErrorCode::kInvalidTopicException);
    const bool names_nothing = hosted.state == cluster::Hosting::kUnknown && topic.by_id &&
                               find_topic(call, topic) == nullptr;
    return std::unexpected(names_nothing ? ErrorCode::kUnknownTopicId : to_wire(hosted.state));
}

const catalog::Partition* led_slot(const Call& call, const TopicRef& topic,
                                   std::int32_t partition) {
    const catalog::Image& image = call.state().partitions.image();
    const catalog::Topic* found = find_topic(image, topic);
    if (found == nullptr || !catalog::slot_kind(found->name)) return nullptr;
    const catalog::Partition* slot = found->partition(base::PartitionId(partition));
    const bool here = slot != nullptr && image.leader(*slot) == call.services().node.id();
    return here ? slot : nullptr;
}

ErrorCode check_epoch(const catalog::Partition& slot, std::int32_t current_leader_epoch) {
    if (current_leader_epoch < 0) return ErrorCode::kNone;
    const auto now = slot.leader_epoch.value();
    if (current_leader_epoch < now) return ErrorCode::kFencedLeaderEpoch;
    return current_leader_epoch > now ? ErrorCode::kUnknownLeaderEpoch : ErrorCode::kNone;
}

LeaderHint leader_hint(const Call& call, const TopicRef& topic, std::int32_t partition) {
    const catalog::Image& image = call.state().partitions.image();
    const catalog::Topic* found = find_topic(image, topic);
    const catalog::Partition* asked =
        found == nullptr ? nullptr : found->partition(base::PartitionId(partition));
    if (asked == nullptr || call.services().node.away()->has(*asked)) return {};
    return {image.leader(*asked).value(), asked->leader_epoch.value()};
}

}  // namespace kaas::broker
