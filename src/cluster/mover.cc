#include "cluster/mover.h"

#include "base/clock.h"
#include "base/ids.h"
#include "catalog/change.h"
#include "catalog/image.h"
#include "catalog/model.h"
#include "cluster/draft.h"
#include "cluster/leadership.h"
#include "cluster/moves.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <set>
#include <utility>
#include <vector>

namespace kaas::cluster {
namespace {

/// Longer than a silent broker is taken for a living one (`broker.session.timeout.ms`).
constexpr std::chrono::seconds kSettle{10};

std::set<catalog::PartitionEpoch> asked_back(const catalog::Image& image) {
    std::set<catalog::PartitionEpoch> epochs;
    image.for_each_topic([&](const catalog::Topic& topic) {
        for (std::size_t i = 0; i < topic.partitions.size(); ++i) {
            const auto& partition = topic.partitions[i];
            const base::PartitionId index(static_cast<std::int32_t>(i));
            if (partition.asked_back) epochs.insert({{topic.id, index}, partition.leader_epoch});
        }
    });
    return epochs;
}

/// Plans grow old.
bool still_good(const Move& move, const catalog::Image& image) {
    const auto* partition = image.partition(move.partition);
    return partition != nullptr && image.led(*partition) && !partition->asked_back &&
           partition->leader.broker == move.from && !image.broker(move.from)->draining &&
           can_take(image, move.to, partition->volume());
}

}  // namespace

void Mover::begin(base::Clock::Steady now) {
    moves_.clear();
    under_way_.clear();
    evening_ = false;
    plan_at_ = now + kSettle;
    repair_at_ = now + config_.check_interval;
}

base::Clock::Steady Mover::due() const {
    return plan_at_ ? std::min(*plan_at_, repair_at_) : repair_at_;
}

void Mover::plan(Draft& draft, base::Clock::Steady now) {
    const bool grow = plan_at_ && *plan_at_ <= now;
    const bool repair = repair_at_ <= now;
    if (!grow && !repair && !look_for_targets_) return;
    look_for_targets_ = false;
    if (repair) repair_at_ = now + config_.check_interval;
    if (grow) {
        plan_at_.reset();
        under_way_ = asked_back(draft.image());
        auto evening = plan_moves(draft.image());
        moves_.assign(evening.moves.begin(), evening.moves.end());
        evening_ = !moves_.empty() || !under_way_.empty();
        if (!evening.lists.empty()) {
            draft.add(catalog::ReplicasChanged{std::move(evening.lists)});
        }
    } else if (repair && config_.repair && moves_.empty()) {
        const auto repairs = plan_repair(draft.image());
        moves_.assign(repairs.begin(), repairs.end());
    }
    const auto targets = plan_targets(draft.image());
    moves_.insert(moves_.begin(), targets.begin(), targets.end());
}

void Mover::forget_finished(const catalog::Image& image) {
    std::erase_if(under_way_, [&](const catalog::PartitionEpoch& one) {
        const auto* partition = image.partition(one.partition);
        return partition == nullptr || partition->leader_epoch != one.epoch ||
               !partition->asked_back;
    });
}

void Mover::step(Draft& draft, base::Clock::Steady now) {
    forget_finished(draft.image());
    // What was under way when it was planned could not be planned for, and what broke down on the
    // way neither. Ends: where all is even, there is nothing to plan.
    if (evening_ && moves_.empty() && under_way_.empty()) plan_now();
    plan(draft, now);
    catalog::ReplicasChanged lists;
    catalog::AskedBack asked;
    while (!moves_.empty() && under_way_.size() < config_.moves_under_way) {
        auto move = std::move(moves_.front());
        moves_.pop_front();
        if (!still_good(move, draft.image())) continue;
        const auto& partition = *draft.image().partition(move.partition);
        if (move.replicas != partition.replicas && move.replicas != partition.target) {
            lists.lists.push_back({move.partition, std::move(move.replicas)});
        }
        asked.epochs.push_back({move.partition, partition.leader_epoch});
        under_way_.insert(asked.epochs.back());
    }
    // The aim first: without it, a successor would find an epoch that is asked back for nobody.
    if (!lists.lists.empty()) draft.add(std::move(lists));
    if (!asked.epochs.empty()) draft.add(std::move(asked));
}

}  // namespace kaas::cluster
