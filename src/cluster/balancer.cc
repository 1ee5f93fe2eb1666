#include "cluster/balancer.h"

#include "base/ids.h"
#include "catalog/config/value.h"
#include "catalog/image.h"
#include "catalog/model.h"
#include "catalog/slot.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kaas::cluster {

namespace {

/// Of the broker, else of all; null when nobody set it.
const std::string* dynamic_cordon(const catalog::Image& image, base::BrokerId broker) {
    for (const auto id : {broker, catalog::kNoBroker}) {
        const auto& configs = image.broker_configs(id);
        auto found = configs.find("cordoned.log.dirs");
        if (found != configs.end()) return &found->second;
    }
    return nullptr;
}

bool takes_partitions(const catalog::Broker& broker, std::string_view volume) {
    auto about = broker.volumes.find(volume);
    return about == broker.volumes.end() || about->second.takes_partitions;
}

}  // namespace

bool is_cordoned(const catalog::Image& image, const catalog::Broker& broker,
                 std::string_view volume) {
    auto about = broker.volumes.find(volume);
    if (about == broker.volumes.end()) return false;
    const auto* dynamic = dynamic_cordon(image, broker.id);
    if (dynamic == nullptr) return about->second.cordoned;
    const auto named = catalog::split_list(*dynamic);
    return std::ranges::any_of(
        named, [&](const std::string& path) { return path == "*" || path == about->second.path; });
}

bool all_cordoned(const catalog::Image& image, const catalog::Broker& broker) {
    return broker.living() && std::ranges::all_of(broker.sessions, [&](const auto& session) {
               return !takes_partitions(broker, session.first) ||
                      is_cordoned(image, broker, session.first);
           });
}

VolumeUse::VolumeUse(const catalog::Image& image, std::optional<std::string> only)
    : image_(image), only_(std::move(only)) {
    if (only_) return;
    image.for_each_topic([&](const catalog::Topic& topic) {
        if (catalog::slot_kind(topic.name)) return;
        for (const auto& partition : topic.partitions) {
            ++partitions_[partition.leader.broker][partition.volume()];
        }
    });
}

std::optional<std::string> VolumeUse::take(const catalog::Broker& broker) {
    auto& counts = partitions_[broker.id];
    std::optional<std::string> best;
    for (const auto& [volume, incarnation] : broker.sessions) {
        if (!may_take(broker, volume)) continue;
        if (!best || counts[volume] < counts[*best]) best = volume;
    }
    if (best) ++counts[*best];
    return best;
}

bool VolumeUse::may_take(const catalog::Broker& broker, std::string_view volume) const {
    if (only_) return volume == *only_;
    auto about = broker.volumes.find(volume);
    if (about != broker.volumes.end() && !about->second.default_eligible) return false;
    return takes_partitions(broker, volume) && !is_cordoned(image_, broker, volume);
}

bool VolumeUse::has_room(const catalog::Broker& broker) const {
    return std::ranges::any_of(
        broker.sessions, [&](const auto& session) { return may_take(broker, session.first); });
}

std::vector<base::BrokerId> candidates(const catalog::Image& image, const VolumeUse& use) {
    std::vector<base::BrokerId> staying;
    std::vector<base::BrokerId> living;
    for (const auto& [id, broker] : image.brokers()) {
        if (!broker->living() || !use.has_room(*broker)) continue;
        living.push_back(id);
        if (!broker->draining) staying.push_back(id);
    }
    return staying.empty() ? living : staying;
}

namespace {

/// Brokers in an order that goes round the racks, those without one being one of their own: so
/// neighbours are of different racks, as far as there are any.
class Ring {
public:
    Ring(const catalog::Image& image, const std::vector<base::BrokerId>& brokers) {
        std::map<std::optional<std::string>, std::vector<base::BrokerId>> racks;
        for (auto id : brokers) racks[image.broker(id)->rack].push_back(id);
        for (std::size_t row = 0; members_.size() < brokers.size(); ++row) {
            std::size_t rack = 0;
            for (const auto& [name, ids] : racks) {
                if (row < ids.size()) members_.push_back({ids[row], rack});
                ++rack;
            }
        }
        racks_ = racks.size();
    }

    /// `count` brokers from `turn` on: each rack once before one twice, as long as it has others.
    [[nodiscard]] std::vector<base::BrokerId> take(std::size_t turn, std::size_t count) const {
        std::vector<base::BrokerId> chosen;
        std::vector<std::size_t> of_rack(racks_);
        std::vector<bool> taken(members_.size());
        for (std::size_t round = 0; chosen.size() < count; ++round) {
            for (std::size_t k = 0; k < members_.size() && chosen.size() < count; ++k) {
                const auto at = (turn + k) % members_.size();
                const auto [id, rack] = members_[at];
                if (taken[at] || of_rack[rack] > round) continue;
                taken[at] = true;
                ++of_rack[rack];
                chosen.push_back(id);
            }
        }
        return chosen;
    }

private:
    struct Member {
        base::BrokerId id;
        std::size_t rack;
    };
    std::vector<Member> members_;
    std::size_t racks_ = 0;
};

}  // namespace

std::vector<Placement> place(const catalog::Image& image, std::size_t count, std::size_t factor,
                             VolumeUse use) {
    const auto brokers = candidates(image, use);
    std::vector<Placement> places;
    if (brokers.empty()) return places;
    places.reserve(count);
    const Ring ring(image, brokers);
    const auto replicas = std::min(factor, brokers.size());
    for (std::size_t i = 0; i < count; ++i) {
        places.push_back(*lead(image, ring.take(image.partition_count() + i, replicas), use));
    }
    return places;
}

std::optional<Placement> lead(const catalog::Image& image, std::vector<base::BrokerId> replicas,
                              VolumeUse& use) {
    for (auto id : replicas) {
        const auto* broker = image.broker(id);
        if (broker == nullptr || !broker->living()) continue;
        auto volume = use.take(*broker);
        if (!volume) continue;
        const auto incarnation = broker->sessions.find(*volume)->second;
        return Placement{std::move(replicas), {id, incarnation}, std::move(*volume)};
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
