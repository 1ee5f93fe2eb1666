#include "cluster/moves.h"

#include "base/ids.h"
#include "catalog/change.h"
#include "catalog/image.h"
#include "catalog/model.h"
#include "catalog/slot.h"
#include "cluster/balancer.h"
#include "cluster/leadership.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kaas::cluster {
namespace {

using Brokers = std::vector<base::BrokerId>;

/// Of those that a partition may go to, the first that can take it.
base::BrokerId first_taker(const catalog::Image& image, const Brokers& brokers,
                           std::string_view volume) {
    auto found = std::ranges::find_if(
        brokers, [&](base::BrokerId id) { return can_take(image, id, volume); });
    return found == brokers.end() ? catalog::kNoBroker : *found;
}

/// Who leads a partition once what is under way, or must follow, is done.
base::BrokerId leader_to_be(const catalog::Image& image, const catalog::Partition& partition) {
    const auto target = first_taker(image, partition.target, partition.volume());
    if (target != catalog::kNoBroker) return target;
    if (!partition.asked_back) return partition.leader.broker;
    const auto next = first_taker(image, partition.replicas, partition.volume());
    return next == catalog::kNoBroker ? partition.leader.broker : next;
}

/// Held by a broker that stays, and not on its way anywhere.
bool may_move(const catalog::Image& image, const catalog::Partition& partition) {
    return image.led(partition) && !partition.asked_back &&
           !image.broker(partition.leader.broker)->draining;
}

/// How good a move is for a partition: less is better.
enum Fit : std::size_t { kPreferred, kReplica, kStranger, kFits };

Fit fit(const catalog::Partition& partition, base::BrokerId to) {
    if (partition.replicas.front() == to) return kPreferred;
    const bool replica = std::ranges::find(partition.replicas, to) != partition.replicas.end();
    return replica ? kReplica : kStranger;
}

/// One topic's part in a pool. Brokers are indices into the pool's.
struct Share {
    struct Movable {
        std::size_t index = 0;  ///< of the partition
        std::size_t leader = 0;
    };
    const catalog::Topic* topic = nullptr;
    std::vector<Movable> movable;
    std::vector<int> leads;  ///< by broker, movable or not
    std::vector<int> quota;  ///< by broker, of the same sum
    int floor = 0;           ///< everybody's least quota; some have one more

    [[nodiscard]] const catalog::Partition& partition(const Movable& one) const {
        return topic->partitions[one.index];
    }
    [[nodiscard]] base::TopicPartition id(const Movable& one) const {
        return {topic->id, base::PartitionId(static_cast<std::int32_t>(one.index))};
    }
    /// Leads more than the least that everybody has: one more costs it no move.
    [[nodiscard]] bool has_extra(std::size_t broker) const { return leads[broker] > floor; }
    [[nodiscard]] bool gets_extra(std::size_t broker) const { return quota[broker] > floor; }
};

/// Partitions that the same brokers can take, and that count together.
///
/// Each topic's partitions are dealt out evenly; what does not divide, its extras, decides who has
/// more in all, so those are dealt so that each broker has as many. Extras stay where they are
/// while that fits, and then change hands, the cheapest first.
class Pool {
public:
    Pool(const catalog::Image& image, Brokers brokers)
        : image_(image), brokers_(std::move(brokers)), extras_(brokers_.size()) {}

    void add(const catalog::Topic& topic, std::size_t index);
    void plan(Evening& evening);

private:
    [[nodiscard]] std::optional<std::size_t> find(base::BrokerId id) const;
    [[nodiscard]] std::vector<std::size_t> all_brokers() const;
    void give_extra(Share& share, std::size_t broker);
    void deal();
    void even_out();
    [[nodiscard]] std::vector<int> surplus_of_extras() const;
    [[nodiscard]] std::size_t cost(const Share& share, std::size_t from, std::size_t to) const;
    void add_moves(Share& share, Evening& evening);
    void add_lists(const Share& share, Evening& evening) const;
    [[nodiscard]] std::optional<std::size_t> receiver(const Share& share, const Share::Movable& one,
                                                      Fit wanted) const;

    const catalog::Image& image_;
    const Brokers brokers_;  ///< by id
    std::vector<Share> shares_;
    std::vector<int> extras_;  ///< by broker, over all topics
};

std::optional<std::size_t> Pool::find(base::BrokerId id) const {
    auto found = std::ranges::lower_bound(brokers_, id);
    if (found == brokers_.end() || *found != id) return std::nullopt;
    return static_cast<std::size_t>(found - brokers_.begin());
}

void Pool::add(const catalog::Topic& topic, std::size_t index) {
    const auto& partition = topic.partitions[index];
    const auto leader = find(leader_to_be(image_, partition));
    if (!leader) return;
    if (shares_.empty() || shares_.back().topic != &topic) {
        shares_.push_back({.topic = &topic,
                           .movable = {},
                           .leads = std::vector<int>(brokers_.size()),
                           .quota = {}});
    }
    auto& share = shares_.back();
    ++share.leads[*leader];
    if (may_move(image_, partition) && partition.target.empty()) {
        share.movable.push_back({index, *leader});
    }
}

std::vector<std::size_t> Pool::all_brokers() const {
    std::vector<std::size_t> all(brokers_.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    return all;
}

void Pool::give_extra(Share& share, std::size_t broker) {
    ++share.quota[broker];
    ++extras_[broker];
}

void Pool::deal() {
    auto order = all_brokers();
    const auto by_extras = [&] {
        std::ranges::sort(order, {},
                          [&](std::size_t broker) { return std::pair(extras_[broker], broker); });
    };
    std::vector<int> left;
    for (auto& share : shares_) {
        int count = 0;
        for (const int leads : share.leads) count += leads;
        const auto brokers = static_cast<int>(brokers_.size());
        share.floor = count / brokers;
        share.quota.assign(brokers_.size(), share.floor);
        auto& extras = left.emplace_back(count % brokers);
        by_extras();
        for (const auto broker : order) {
            if (extras == 0) break;
            if (!share.has_extra(broker)) continue;
            give_extra(share, broker);
            --extras;
        }
    }
    // What somebody has to get anyway goes to whoever has the fewest.
    for (std::size_t i = 0; i < shares_.size(); ++i) {
        if (left[i] == 0) continue;
        by_extras();
        for (const auto broker : order) {
            if (left[i] == 0) break;
            if (shares_[i].gets_extra(broker)) continue;
            give_extra(shares_[i], broker);
            --left[i];
        }
    }
}

/// How many extras each has too many; too few are negative.
std::vector<int> Pool::surplus_of_extras() const {
    int total = 0;
    for (const int extras : extras_) total += extras;
    const auto count = static_cast<int>(brokers_.size());
    auto order = all_brokers();
    std::ranges::sort(order, {},
                      [&](std::size_t broker) { return std::pair(-extras_[broker], broker); });
    std::vector<int> surplus(brokers_.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
        const int fair = total / count + (static_cast<int>(i) < total % count ? 1 : 0);
        surplus[order[i]] = extras_[order[i]] - fair;
    }
    return surplus;
}

/// Of handing an extra on: moves that it adds, or spares, then how good they are.
std::size_t Pool::cost(const Share& share, std::size_t from, std::size_t to) const {
    const std::size_t more =
        1U + (share.has_extra(from) ? 1U : 0U) - (share.has_extra(to) ? 1U : 0U);
    auto best = kStranger;
    for (const auto& one : share.movable) {
        if (one.leader == from) best = std::min(best, fit(share.partition(one), brokers_[to]));
    }
    return more * kFits + best;
}

void Pool::even_out() {
    auto surplus = surplus_of_extras();
    constexpr std::size_t kCosts = 3U * kFits;
    struct Pair {
        std::size_t from;
        std::size_t to;
        std::array<std::vector<Share*>, kCosts> shares;  ///< by cost
    };
    std::vector<Pair> pairs;
    for (std::size_t from = 0; from < surplus.size(); ++from) {
        for (std::size_t to = 0; to < surplus.size() && surplus[from] > 0; ++to) {
            if (surplus[to] >= 0) continue;
            auto& pair = pairs.emplace_back(Pair{from, to, {}});
            for (auto& share : shares_) {
                if (share.gets_extra(from) && !share.gets_extra(to)) {
                    pair.shares[cost(share, from, to)].push_back(&share);
                }
            }
        }
    }
    // Somebody with too many has an extra, somewhere, that one with too few has not. Who has too
    // many only gives, and who has too few only gets: so no cost changes on the way.
    for (std::size_t at = 0; at < kCosts; ++at) {
        for (auto& [from, to, shares] : pairs) {
            for (auto* share : shares[at]) {
                if (surplus[from] <= 0 || surplus[to] >= 0) break;
                if (!share->gets_extra(from) || share->gets_extra(to)) continue;
                --share->quota[from];
                ++share->quota[to];
                --surplus[from];
                ++surplus[to];
            }
        }
    }
}

std::optional<std::size_t> Pool::receiver(const Share& share, const Share::Movable& one,
                                          Fit wanted) const {
    const auto& partition = share.partition(one);
    std::optional<std::size_t> best;
    int most = 0;
    for (std::size_t to = 0; to < brokers_.size(); ++to) {
        const int missing = share.quota[to] - share.leads[to];
        if (missing <= most || fit(partition, brokers_[to]) != wanted) continue;
        best = to;
        most = missing;
    }
    return best;
}

void Pool::add_moves(Share& share, Evening& evening) {
    // First those that are not with their preferred leader anyway.
    std::ranges::sort(share.movable, {}, [&](const Share::Movable& one) {
        const bool preferred = share.partition(one).replicas.front() == brokers_[one.leader];
        return std::pair(preferred, one.index);
    });
    for (const auto wanted : {kPreferred, kReplica, kStranger}) {
        for (auto& one : share.movable) {
            if (share.leads[one.leader] <= share.quota[one.leader]) continue;
            const auto to = receiver(share, one, wanted);
            if (!to) continue;
            const auto& partition = share.partition(one);
            evening.moves.push_back(
                {.partition = share.id(one),
                 .from = partition.leader.broker,
                 .to = brokers_[*to],
                 .replicas = with_replica(image_, partition.replicas, brokers_[*to],
                                          ReplicaPlace::kFirst)});
            --share.leads[one.leader];
            ++share.leads[*to];
            one.leader = *to;  // full by now, so it stays there
        }
    }
}

void Pool::add_lists(const Share& share, Evening& evening) const {
    for (const auto& one : share.movable) {
        const auto& partition = share.partition(one);
        const auto preferred = partition.replicas.front();
        const auto leader = brokers_[one.leader];
        // One that cannot lead now shall have it back when it can.
        if (partition.leader.broker != leader || preferred == leader || !find(preferred)) continue;
        evening.lists.push_back({share.id(one), with_replica(image_, partition.replicas, leader,
                                                             ReplicaPlace::kFirst)});
    }
}

void Pool::plan(Evening& evening) {
    deal();
    even_out();
    for (auto& share : shares_) {
        add_moves(share, evening);
        add_lists(share, evening);
    }
}

/// The pools of an image: by kind of slots (none: records), then by who can take them.
class Pools {
public:
    explicit Pools(const catalog::Image& image) : image_(image) {}

    void add(const catalog::Topic& topic) {
        const auto kind = catalog::slot_kind(topic.name);
        for (std::size_t i = 0; i < topic.partitions.size(); ++i) {
            const auto& partition = topic.partitions[i];
            if (!image_.led(partition)) continue;
            const auto& brokers = takers(partition.volume(), kind.has_value());
            if (brokers.size() < 2) continue;
            pools_.try_emplace(std::pair(kind, brokers), image_, brokers)
                .first->second.add(topic, i);
        }
    }
    [[nodiscard]] Evening plan() {
        Evening evening;
        for (auto& [key, pool] : pools_) pool.plan(evening);
        return evening;
    }

private:
    /// Who may get partitions on `volume` by a plan: nothing new goes to a cordoned one.
    const Brokers& takers(const std::string& volume, bool slots) {
        auto [known, is_new] = takers_[slots ? 1 : 0].try_emplace(volume);
        if (is_new) {
            for (const auto& [id, broker] : image_.brokers()) {
                if (!can_take(image_, id, volume)) continue;
                if (slots || !is_cordoned(image_, *broker, volume)) known->second.push_back(id);
            }
        }
        return known->second;
    }

    const catalog::Image& image_;
    std::array<std::map<std::string, Brokers>, 2> takers_;
    std::map<std::pair<std::optional<catalog::SlotKind>, Brokers>, Pool> pools_;
};

/// Calls `visit(id, partition)` for each, in an order that depends on the image alone.
template <class Visit>
void for_each_partition(const catalog::Image& image, Visit visit) {
    for (const auto* topic : image.topics_by_name()) {
        for (std::size_t i = 0; i < topic->partitions.size(); ++i) {
            const base::PartitionId index(static_cast<std::int32_t>(i));
            visit(base::TopicPartition{topic->id, index}, topic->partitions[i]);
        }
    }
}

}  // namespace

Evening plan_moves(const catalog::Image& image) {
    Pools pools(image);
    for (const auto* topic : image.topics_by_name()) pools.add(*topic);
    return pools.plan();
}

std::vector<Move> plan_repair(const catalog::Image& image) {
    std::vector<Move> moves;
    for_each_partition(image, [&](const base::TopicPartition& id, const auto& partition) {
        const auto to = partition.replicas.front();
        if (partition.leader.broker == to || !partition.target.empty() ||
            !may_move(image, partition) || !can_take(image, to, partition.volume())) {
            return;
        }
        moves.push_back({id, partition.leader.broker, to, partition.replicas});
    });
    return moves;
}

std::vector<Move> plan_targets(const catalog::Image& image) {
    std::vector<Move> moves;
    for_each_partition(image, [&](const base::TopicPartition& id, const auto& partition) {
        if (partition.target.empty() || !may_move(image, partition)) return;
        const auto to = first_taker(image, partition.target, partition.volume());
        if (to == catalog::kNoBroker) return;
        moves.push_back({id, partition.leader.broker, to, partition.target});
    });
    return moves;
}

}  // namespace kaas::cluster
