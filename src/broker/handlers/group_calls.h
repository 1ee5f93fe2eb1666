#pragma once

#include "base/ids.h"
#include "base/utf8.h"
#include "broker/call.h"
#include "broker/handlers/partition_access.h"
#include "broker/handlers/slot_calls.h"
#include "coordinator/group_requests.h"
#include "coordinator/group_slot.h"
#include "wire/error_code.h"
#include "wire/types.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// What handlers of the group APIs share.
namespace kaas::broker {

[[nodiscard]] inline std::optional<std::string> owned(const std::optional<wire::String>& text) {
    if (!text) return std::nullopt;
    return base::to_utf8(*text);
}
[[nodiscard]] inline std::string owned(const wire::Bytes& bytes) {
    return std::string(base::as_text(bytes.view()));
}
[[nodiscard]] inline coordinator::MemberIdentity identity_of(
    const wire::String& member_id, const std::optional<wire::String>& group_instance_id) {
    return {.member_id = base::to_utf8(member_id), .group_instance_id = owned(group_instance_id)};
}
[[nodiscard]] inline wire::Bytes to_bytes(std::string_view text) {
    return wire::Bytes(base::as_bytes(text));
}

/// Outcomes by topic, as Apache's response builders gather them: those of the broker first, then a
/// coordinator's, each topic once. `Topic` is a response's.
template <class Topic>
class TopicOutcomes {
public:
    explicit TopicOutcomes(std::vector<Topic>& topics, bool by_id = false)
        : topics_(topics), by_id_(by_id) {}

    void add(std::string_view name, const base::Uuid& id, std::int32_t partition,
             wire::ErrorCode error) {
        auto& out = topic(name, id).partitions.emplace_back();
        out.partition_index = partition;
        out.error_code = error;
    }
    void add(const std::vector<coordinator::TopicOutcome>& outcomes) {
        for (const auto& one : outcomes) {
            for (const auto& partition : one.partitions) {
                add(one.name, one.id.uuid, partition.partition.value(), partition.error);
            }
        }
    }

private:
    Topic& topic(std::string_view name, const base::Uuid& id) {
        const auto same = [&](const Topic& known) {
            if constexpr (requires { known.topic_id; }) {
                if (by_id_) return known.topic_id == id;
            }
            return known.name == name;
        };
        if (const auto found = std::ranges::find_if(topics_, same); found != topics_.end()) {
            return *found;
        }
        auto& made = topics_.emplace_back();
        made.name = name;
        if constexpr (requires { made.topic_id; }) made.topic_id = id;
        return made;
    }

    std::vector<Topic>& topics_;
    const bool by_id_;
};

/// Sorts out what a request names: `exists(topic, partition)` for each partition that is there, the
/// rest into `outcomes`.
template <class Asked, class Outcomes, class Exists>
void sort_out(const Call& call, const Asked& asked, bool by_id, Outcomes& outcomes,
              Exists&& exists) {
    base::Uuid id{};
    if constexpr (requires { asked.topic_id; }) id = asked.topic_id;
    const auto* topic = find_topic(call, {asked.name, id, by_id});
    const auto missing = by_id && topic == nullptr ? wire::ErrorCode::kUnknownTopicId
                                                   : wire::ErrorCode::kUnknownTopicOrPartition;
    const std::string_view name = topic == nullptr ? asked.name.view() : topic->name;
    for (const auto& partition : asked.partitions) {
        const base::PartitionId index(partition.partition_index);
        if (topic != nullptr && topic->partition(index) != nullptr) {
            exists(*topic, partition);
        } else {
            outcomes.add(name, topic == nullptr ? id : topic->id.uuid, partition.partition_index,
                         missing);
        }
    }
}

}  // namespace kaas::broker
