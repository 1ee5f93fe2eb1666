#pragma once

#include "base/ids.h"
#include "base/uuid.h"
#include "catalog/change.h"
#include "catalog/image.h"
#include "catalog/model.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

/// For tests: clusters of several brokers, and topics that they lead.
namespace kaas::cluster {

struct Member {
    int id;
    std::vector<std::string> volumes{"main"};
    bool draining = false;
    std::optional<std::string> rack{};
};

inline catalog::Broker broker_of(const Member& member) {
    catalog::Broker broker{
        .id = base::BrokerId(member.id), .rack = member.rack, .draining = member.draining};
    for (const auto& volume : member.volumes) {
        broker.sessions.emplace(volume, base::Incarnation{base::Uuid::random()});
    }
    return broker;
}

inline catalog::ImagePtr cluster(const std::vector<Member>& members) {
    catalog::ImageEditor editor("c");
    for (const auto& member : members) {
        EXPECT_TRUE(editor.apply(catalog::BrokerRegistered{broker_of(member)}));
    }
    return std::move(editor).finish();
}

inline std::vector<base::BrokerId> ids(const std::vector<int>& numbers) {
    return {numbers.begin(), numbers.end()};
}

/// A partition of `replicas`, led by `leader` in its present life.
inline catalog::Partition led_by(const catalog::Image& image, int leader,
                                 const std::vector<int>& replicas,
                                 const std::string& volume = "main") {
    catalog::Partition partition;
    partition.replicas = ids(replicas);
    partition.leader.broker = base::BrokerId(leader);
    if (const auto* broker = image.broker(base::BrokerId(leader))) {
        auto session = broker->sessions.find(volume);
        if (session != broker->sessions.end()) partition.leader.incarnation = session->second;
    }
    partition.runs = {{base::LeaderEpoch(0), volume}};
    return partition;
}

/// A cluster that tests change.
class World {
public:
    explicit World(const std::vector<Member>& members) : image_(cluster(members)) {}

    [[nodiscard]] const catalog::Image& image() const { return *image_; }
    void apply(const catalog::Change& change) {
        catalog::ImageEditor editor(*image_);
        auto applied = editor.apply(change);
        ASSERT_TRUE(applied) << applied.error().context;
        image_ = std::move(editor).finish();
    }
    base::TopicId create(const std::string& name, std::vector<catalog::Partition> partitions) {
        catalog::Topic topic{.name = name, .id = {base::Uuid::random()}, .partitions = {}};
        topic.partitions = std::move(partitions);
        apply(catalog::TopicCreated{topic});
        return topic.id;
    }
    /// One partition for each of `replicas`, led by the first of it.
    base::TopicId create(const std::string& name, const std::vector<std::vector<int>>& replicas) {
        std::vector<catalog::Partition> partitions;
        for (const auto& list : replicas) partitions.push_back(led_by(*image_, list[0], list));
        return create(name, std::move(partitions));
    }
    void join(const Member& member) { apply(catalog::BrokerRegistered{broker_of(member)}); }
    void leave(int id) { apply(catalog::BrokerGone{base::BrokerId(id)}); }

    [[nodiscard]] const catalog::Partition& at(base::TopicId topic, int index) const {
        return *image_->partition({topic, base::PartitionId(index)});
    }
    [[nodiscard]] int leader(base::TopicId topic, int index) const {
        return image_->leader(at(topic, index)).value();
    }

private:
    catalog::ImagePtr image_;
};

}  // namespace kaas::cluster
