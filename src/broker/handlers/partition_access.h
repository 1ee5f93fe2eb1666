#pragma once

#include "base/ids.h"
#include "broker/call.h"
#include "catalog/image.h"
#include "cluster/partition_table.h"
#include "storage/partition_log.h"
#include "wire/error_code.h"

#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <string_view>

namespace kaas::broker {

/// A topic as requests name it: by name in older versions, by id in newer ones.
struct TopicRef {
    std::string_view name;
    base::Uuid id;
    bool by_id = false;

    [[nodiscard]] static TopicRef named(std::string_view name) { return {name, {}, false}; }
};

/// By the image that this reactor goes by; null when no topic is called that, or has that id.
[[nodiscard]] const catalog::Topic* find_topic(const Call& call, const TopicRef& topic);

/// The log that this broker leads for a partition, or what Kafka answers when it does not: unknown
/// topic or id, not the leader (opening included: retriable), storage error, and
/// INVALID_TOPIC_EXCEPTION for a slot of coordinators (`led_slot`).
[[nodiscard]] std::expected<storage::LogPtr, wire::ErrorCode> led_log(const Call& call,
                                                                      const TopicRef& topic,
                                                                      std::int32_t partition);

/// The partition, when it is a slot of coordinators that this broker leads; else null. To clients
/// it is a log that is always empty and that nobody may write to. The pointer lives until this
/// reactor goes by another image.
[[nodiscard]] const catalog::Partition* led_slot(const Call& call, const TopicRef& topic,
                                                 std::int32_t partition);
/// True for what the image gives this broker and it has lost since: whoever asks for it should ask
/// for metadata, and that elsewhere.
[[nodiscard]] bool is_away(const Call& call, const TopicRef& topic, std::int32_t partition);
/// What a client's idea of a slot's leader epoch is answered with; Kafka's -1 is none.
[[nodiscard]] wire::ErrorCode check_epoch(const catalog::Partition& slot,
                                          std::int32_t current_leader_epoch);

/// Where the partition is led by the newest metadata: the hint of KIP-951. None for what is away.
struct LeaderHint {
    std::int32_t leader_id = -1;
    std::int32_t leader_epoch = -1;
};
[[nodiscard]] LeaderHint leader_hint(const Call& call, const TopicRef& topic,
                                     std::int32_t partition);

/// Errors that come with a hint.
[[nodiscard]] inline bool has_hint(wire::ErrorCode error) {
    return error == wire::ErrorCode::kNotLeaderOrFollower ||
           error == wire::ErrorCode::kFencedLeaderEpoch;
}

/// Adds the endpoint of `leader` to a response's `node_endpoints`, once.
template <class Endpoints>
void add_endpoint(const Call& call, std::int32_t leader, Endpoints& endpoints) {
    for (const auto& known : endpoints) {
        if (known.node_id == leader) return;
    }
    const catalog::Broker* broker = call.state().partitions.image().broker(base::BrokerId(leader));
    const catalog::Endpoint* endpoint =
        broker == nullptr ? nullptr : broker->endpoint(call.peer().listener);
    if (endpoint == nullptr) return;
    auto& out = endpoints.emplace_back();
    out.node_id = leader;
    out.host = endpoint->host;
    out.port = endpoint->port;
    if (broker->rack) out.rack = *broker->rack;
}

}  // namespace kaas::broker
