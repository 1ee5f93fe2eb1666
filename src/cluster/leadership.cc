#include "cluster/leadership.h"

#include "base/ids.h"
#include "catalog/change.h"
#include "catalog/image.h"
#include "catalog/model.h"
#include "catalog/slot.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace kaas::cluster {

bool can_take(const catalog::Image& image, base::BrokerId id, std::string_view volume) {
    const auto* broker = image.broker(id);
    return broker != nullptr && !broker->draining && broker->sessions.contains(volume);
}

namespace {

bool of_one_rack(const catalog::Image& image, base::BrokerId one, base::BrokerId other) {
    const auto* a = image.broker(one);
    const auto* b = image.broker(other);
    return a != nullptr && b != nullptr && a->rack && a->rack == b->rack;
}

}  // namespace

std::vector<base::BrokerId> with_replica(const catalog::Image& image,
                                         std::vector<base::BrokerId> replicas,
                                         base::BrokerId broker, ReplicaPlace place) {
    if (auto known = std::ranges::find(replicas, broker); known != replicas.end()) {
        replicas.erase(known);
    } else if (!replicas.empty()) {
        auto out = std::ranges::find_if(
            replicas, [&](base::BrokerId id) { return image.broker(id) == nullptr; });
        if (out == replicas.end()) {
            out = std::ranges::find_if(
                replicas, [&](base::BrokerId id) { return of_one_rack(image, id, broker); });
        }
        replicas.erase(out == replicas.end() ? out - 1 : out);
    }
    replicas.insert(place == ReplicaPlace::kFirst ? replicas.begin() : replicas.end(), broker);
    return replicas;
}

LeaderChoice::LeaderChoice(const catalog::Image& image) : image_(image) {
    image.for_each_topic([&](const catalog::Topic& topic) {
        auto& counts = catalog::slot_kind(topic.name) ? slots_ : records_;
        for (const auto& partition : topic.partitions) ++counts[partition.leader.broker];
    });
}

LeaderChoice::Counts& LeaderChoice::counts_of(const catalog::Topic& topic) {
    auto [counts, is_new] = of_topic_.try_emplace(topic.id);
    if (is_new) {
        for (const auto& partition : topic.partitions) ++counts->second[partition.leader.broker];
    }
    return counts->second;
}

LeaderChoice::Load LeaderChoice::load(const catalog::Topic& topic, base::BrokerId id) {
    return {counts_of(topic)[id], (catalog::slot_kind(topic.name) ? slots_ : records_)[id]};
}

base::BrokerId LeaderChoice::choose(const catalog::Topic& topic,
                                    const std::vector<base::BrokerId>& replicas,
                                    std::string_view volume) {
    auto best = catalog::kNoBroker;
    for (auto id : replicas) {
        if (!can_take(image_, id, volume)) continue;
        if (id == replicas.front()) return id;
        if (best == catalog::kNoBroker || load(topic, id) < load(topic, best)) best = id;
    }
    return best;
}

base::BrokerId LeaderChoice::choose_of_all(const catalog::Topic& topic, std::string_view volume) {
    auto best = catalog::kNoBroker;
    for (const auto& [id, broker] : image_.brokers()) {
        if (!can_take(image_, id, volume)) continue;
        if (best == catalog::kNoBroker || load(topic, id) < load(topic, best)) best = id;
    }
    return best;
}

catalog::Assignment LeaderChoice::assign(const base::TopicPartition& id,
                                         const catalog::Topic& topic,
                                         const catalog::Partition& partition,
                                         std::vector<base::BrokerId> replicas,
                                         base::BrokerId leader) {
    auto& in_all = catalog::slot_kind(topic.name) ? slots_ : records_;
    auto& of_topic = counts_of(topic);
    for (auto* counts : {&in_all, &of_topic}) {
        --(*counts)[partition.leader.broker];
        ++(*counts)[leader];
    }
    const auto& volume = partition.volume();
    const auto incarnation = image_.broker(leader)->sessions.find(volume)->second;
    return {.partition = id,
            .replicas = std::move(replicas),
            .leader = {leader, incarnation},
            .leader_epoch = partition.leader_epoch + 1,
            .volume = volume};
}

std::optional<catalog::Assignment> LeaderChoice::next(const base::TopicPartition& id) {
    const auto& topic = *image_.topic(id.topic);
    const auto& partition = *topic.partition(id.partition);
    const auto& volume = partition.volume();
    // Where it shall go comes before where it was; if nobody there can, it waits for its target
    // with one of the replicas that it has.
    for (const auto* replicas : {&partition.target, &partition.replicas}) {
        const auto chosen = choose(topic, *replicas, volume);
        if (chosen != catalog::kNoBroker) return assign(id, topic, partition, *replicas, chosen);
    }
    const auto chosen = choose_of_all(topic, volume);
    if (chosen == catalog::kNoBroker) return std::nullopt;
    // Last, so that the preferred leader stays preferred.
    auto replicas = with_replica(image_, partition.replicas, chosen, ReplicaPlace::kLast);
    return assign(id, topic, partition, std::move(replicas), chosen);
}

std::optional<catalog::Assignment> LeaderChoice::after_release(const base::TopicPartition& id) {
    const auto& topic = *image_.topic(id.topic);
    const auto& partition = *topic.partition(id.partition);
    if (!partition.asked_back && can_take(image_, partition.leader.broker, partition.volume())) {
        return assign(id, topic, partition, partition.replicas, partition.leader.broker);
    }
    return next(id);
}

std::vector<catalog::Assignment> place_homeless(const catalog::Image& image) {
    std::vector<const catalog::Topic*> topics;
    image.for_each_topic([&](const catalog::Topic& topic) {
        if (!std::ranges::all_of(topic.partitions,
                                 [&](const auto& partition) { return image.led(partition); })) {
            topics.push_back(&topic);
        }
    });
    std::vector<catalog::Assignment> assignments;
    if (topics.empty()) return assignments;
    // The order decides who gets what, and that of a hash map is nobody's to know.
    std::ranges::sort(topics, {}, &catalog::Topic::name);
    LeaderChoice choice(image);
    for (const auto* topic : topics) {
        for (std::size_t i = 0; i < topic->partitions.size(); ++i) {
            if (image.led(topic->partitions[i])) continue;
            const base::PartitionId index(static_cast<std::int32_t>(i));
            if (auto next = choice.next({topic->id, index})) {
                assignments.push_back(std::move(*next));
            }
        }
    }
    return assignments;
}

}  // namespace kaas::cluster
