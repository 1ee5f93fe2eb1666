#include "cluster/balancer.h"

#include "base/ids.h"
#include "catalog/image.h"
#include "catalog/model.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

namespace kaas::cluster {

std::vector<base::BrokerId> candidates(const catalog::Image& image) {
    std::vector<base::BrokerId> staying;
    std::vector<base::BrokerId> living;
    for (const auto& [id, broker] : image.brokers()) {
        if (!broker->living()) continue;
        living.push_back(id);
        if (!broker->draining) staying.push_back(id);
    }
    return staying.empty() ? living : staying;
}

std::vector<Placement> place(const catalog::Image& image, std::size_t count, std::size_t factor) {
    const auto brokers = candidates(image);
    std::vector<Placement> places;
    if (brokers.empty()) return places;
    places.reserve(count);
    const auto replicas = std::min(factor, brokers.size());
    for (std::size_t i = 0; i < count; ++i) {
        const auto turn = image.partition_count() + i;
        std::vector<base::BrokerId> chosen;
        chosen.reserve(replicas);
        for (std::size_t k = 0; k < replicas; ++k) {
            chosen.push_back(brokers[(turn + k) % brokers.size()]);
        }
        places.push_back(*lead(image, std::move(chosen), turn / brokers.size()));
    }
    return places;
}

std::optional<Placement> lead(const catalog::Image& image, std::vector<base::BrokerId> replicas,
                              std::size_t turn) {
    for (auto id : replicas) {
        const auto* broker = image.broker(id);
        if (broker == nullptr || !broker->living()) continue;
        const auto at = static_cast<std::ptrdiff_t>(turn % broker->sessions.size());
        const auto& [volume, incarnation] = *std::next(broker->sessions.begin(), at);
        return Placement{std::move(replicas), {id, incarnation}, volume};
    }
    return std::nullopt;
}

std::optional<Placement> lead_again(const catalog::Image& image,
                                    const catalog::Partition& partition) {
    const auto* leader = image.broker(partition.leader.broker);
    if (leader != nullptr && !leader->draining) {
        auto session = leader->sessions.find(partition.volume());
        if (session != leader->sessions.end()) {
            return Placement{partition.replicas, {leader->id, session->second}, partition.volume()};
        }
    }
    // Elsewhere only where the data is: on another volume it would open empty.
    for (auto id : partition.replicas) {
        const auto* broker = image.broker(id);
        if (broker == nullptr) continue;
        auto session = broker->sessions.find(partition.volume());
        if (session == broker->sessions.end()) continue;
        return Placement{partition.replicas, {id, session->second}, partition.volume()};
    }
    return std::nullopt;
}

catalog::Partition new_partition(const Placement& placement) {
    catalog::Partition partition;
    partition.replicas = placement.replicas;
    partition.leader = placement.leader;
    partition.runs = {{partition.leader_epoch, placement.volume}};
    return partition;
}

}  // namespace kaas::cluster
