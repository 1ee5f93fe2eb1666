#include "catalog/image.h"

#include "base/ids.h"
#include "catalog/model.h"
#include "catalog/topic_name.h"

#include <algorithm>
#include <string_view>
#include <vector>

namespace kaas::catalog {

const Broker* Image::broker(base::BrokerId id) const {
    auto found = brokers_.find(id);
    return found == brokers_.end() ? nullptr : found->second.get();
}

const Topic* Image::topic(std::string_view name) const {
    const auto* found = by_name_.find(name);
    return found == nullptr ? nullptr : found->get();
}

const Topic* Image::topic(const base::TopicId& id) const {
    const auto* found = by_id_.find(id);
    return found == nullptr ? nullptr : found->get();
}

const Partition* Image::partition(const base::TopicPartition& id) const {
    const auto* found = topic(id.topic);
    return found == nullptr ? nullptr : found->partition(id.partition);
}

std::vector<const Topic*> Image::topics_by_name() const {
    std::vector<const Topic*> topics;
    topics.reserve(topic_count());
    for_each_topic([&](const Topic& topic) { topics.push_back(&topic); });
    std::ranges::sort(topics, {}, &Topic::name);
    return topics;
}

std::vector<TopicDifference> Image::changed_topics(const Image& older) const {
    std::vector<TopicDifference> changed;
    by_id_.for_each_difference(older.by_id_, [&](const TopicPtr* before, const TopicPtr* now) {
        changed.push_back({before ? *before : nullptr, now ? *now : nullptr});
    });
    return changed;
}

const Topic* Image::colliding_topic(std::string_view name) const {
    if (!has_collision_characters(name)) return nullptr;
    const auto* names = by_unified_name_.find(unified_topic_name(name));
    return names == nullptr ? nullptr : topic(names->front());
}

bool Image::led(const Partition& partition) const {
    if (partition.released) return false;
    const auto* leader = broker(partition.leader.broker);
    if (leader == nullptr) return false;
    auto session = leader->sessions.find(partition.volume());
    return session != leader->sessions.end() && session->second == partition.leader.incarnation;
}

std::vector<base::BrokerId> Image::living_replicas(const Partition& partition) const {
    std::vector<base::BrokerId> living;
    for (auto id : partition.replicas) {
        const auto* replica = broker(id);
        if (replica != nullptr && replica->living()) living.push_back(id);
    }
    return living;
}

const ConfigMap& Image::broker_configs(base::BrokerId id) const {
    static const ConfigMap none;
    auto found = broker_configs_.find(id);
    return found == broker_configs_.end() ? none : found->second;
}

}  // namespace kaas::catalog
