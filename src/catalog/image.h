#pragma once

#include "base/ids.h"
#include "catalog/model.h"
#include "catalog/sharded_map.h"

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kaas::catalog {

/// Place of an image in history: the controller's epoch, and how many changes it has made in it.
struct ImageVersion {
    base::ControllerEpoch epoch{0};
    std::uint64_t changes = 0;
    friend auto operator<=>(const ImageVersion&, const ImageVersion&) = default;
};

/// A topic of two images; null where it is not there.
struct TopicDifference {
    TopicPtr before;
    TopicPtr now;
};

/// All metadata of a cluster at one moment; never changes once published. Look-ups take constant
/// time. Pointers that it gives live as long as the image. Thread: any. Made by `ImageEditor`.
class Image {
public:
    Image() = default;
    Image& operator=(const Image&) = delete;

    [[nodiscard]] const std::string& cluster_id() const { return cluster_id_; }
    [[nodiscard]] ImageVersion version() const { return version_; }
    /// Broker that the controller of `version().epoch` runs in.
    [[nodiscard]] base::BrokerId controller() const { return controller_; }

    [[nodiscard]] const std::map<base::BrokerId, BrokerPtr>& brokers() const { return brokers_; }
    [[nodiscard]] const Broker* broker(base::BrokerId id) const;

    [[nodiscard]] const Topic* topic(std::string_view name) const;
    [[nodiscard]] const Topic* topic(const base::TopicId& id) const;
    [[nodiscard]] const Partition* partition(const base::TopicPartition& id) const;
    [[nodiscard]] std::size_t topic_count() const { return by_id_.size(); }
    [[nodiscard]] std::size_t partition_count() const { return partition_count_; }
    /// Sorted by name; costs a sort of all topics.
    [[nodiscard]] std::vector<const Topic*> topics_by_name() const;
    /// Calls `visit(const Topic&)` for each topic, in no order.
    template <class Visit>
    void for_each_topic(Visit&& visit) const {
        by_id_.for_each([&](const base::TopicId&, const TopicPtr& topic) { visit(*topic); });
    }
    /// What is not the same as in `older`. Cheap for images that share.
    [[nodiscard]] std::vector<TopicDifference> changed_topics(const Image& older) const;
    /// A topic whose name clashes with `name` once '.' and '_' are taken for the same (Apache
    /// `Topic.hasCollision`); null when there is none.
    [[nodiscard]] const Topic* colliding_topic(std::string_view name) const;

    /// True when the leader that `partition` names is the present life of its broker and holds its
    /// epoch.
    [[nodiscard]] bool led(const Partition& partition) const;
    /// Leader for Metadata: kNoBroker when nobody leads.
    [[nodiscard]] base::BrokerId leader(const Partition& partition) const {
        return led(partition) ? partition.leader.broker : kNoBroker;
    }
    /// Living members of `partition.replicas`: Metadata's `isr`.
    [[nodiscard]] std::vector<base::BrokerId> living_replicas(const Partition& partition) const;

    /// Dynamic configs of one broker, or with kNoBroker the cluster-wide default of all.
    [[nodiscard]] const ConfigMap& broker_configs(base::BrokerId id) const;

    [[nodiscard]] const std::map<base::TopicId, Deletion>& deletions() const { return deletions_; }

private:
    friend class ImageEditor;
    friend class PictureCodec;
    Image(const Image&) = default;

    std::string cluster_id_;
    ImageVersion version_;
    base::BrokerId controller_ = kNoBroker;
    std::map<base::BrokerId, BrokerPtr> brokers_;
    std::map<base::BrokerId, ConfigMap> broker_configs_;
    std::map<base::TopicId, Deletion> deletions_;
    ShardedMap<base::TopicId, TopicPtr> by_id_;
    ShardedMap<std::string_view, TopicPtr> by_name_;  // keys are views into the topic
    /// Topics by their name with '_' for '.'; only of names that have either.
    ShardedMap<std::string, std::vector<std::string>> by_unified_name_;
    std::size_t partition_count_ = 0;
    UnknownKeys unknown_;
};
using ImagePtr = std::shared_ptr<const Image>;

}  // namespace kaas::catalog
