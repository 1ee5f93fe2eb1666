#include "cluster/tenancy.h"

#include "base/clock.h"
#include "base/ids.h"
#include "catalog/change.h"
#include "catalog/model.h"
#include "cluster/place.h"
#include "storage/error.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <utility>

namespace kaas::cluster {
namespace {

/// Between one epoch and the next: at once after the first failure, then this long, then twice as
/// long each time.
constexpr std::chrono::milliseconds kFirstPause{1'000};
constexpr std::chrono::milliseconds kLastPause{30'000};
/// Between two reports of one release. A controller that has nobody else to give an epoch to is not
/// asked more often either.
constexpr std::chrono::milliseconds kReportPause{1'000};

}  // namespace

std::optional<Tenure> tenure_of(const catalog::Partition& partition, base::BrokerId self,
                                const Places& places) {
    if (partition.released || partition.leader.broker != self) return std::nullopt;
    auto place = places.find(partition.volume());
    // Meant for an earlier life of this broker: not an order to this one.
    if (place == places.end() || place->second.incarnation != partition.leader.incarnation) {
        return std::nullopt;
    }
    return Tenure{partition.leader_epoch, partition.volume(), catalog::epochs_to_walk(partition),
                  partition.asked_back};
}

bool is_stranded(const catalog::Partition& partition, base::BrokerId self, const Places& places) {
    return partition.leader.broker == self && !places.contains(partition.volume());
}

bool Tenancy::aim(std::optional<Tenure> tenure) {
    recalled_ = tenure && tenure->asked_back;
    const bool wanted = tenure && !recalled_ && tenure->epoch > given_up_;
    const bool news = recalled_ || wanted != wanted_ || (wanted && tenure != assigned_);
    wanted_ = wanted;
    assigned_ = std::move(tenure);
    if (assigned_ == held_) forget_walk();
    give_up_recalled();
    return news;
}

void Tenancy::forget_walk() {
    if (assigned_) assigned_->walk = {};
}

void Tenancy::give_back() {
    recalled_ = assigned_.has_value();
    wanted_ = false;
    give_up_recalled();
}

void Tenancy::give_up_recalled() {
    if (recalled_ && !busy_ && !open_) given_up_ = std::max(given_up_, assigned_->epoch);
}

void Tenancy::start_over() {
    auto waiting = std::move(batches);
    *this = Tenancy();
    batches = std::move(waiting);
}

void Tenancy::strand(bool stranded) {
    if (std::exchange(stranded_, stranded) == stranded) return;
    if (!busy_ && !open_ && !wanted_) state_ = idle_state();
}

Tenancy::Step Tenancy::begin() {
    if (busy_) return Step::kNone;
    if (open_ && !still_wanted()) {
        busy_ = true;
        state_ = wanted_ ? Hosting::kOpening : idle_state();
        return Step::kClose;
    }
    if (open_ || !wanted_) {
        if (!open_) state_ = idle_state();
        return Step::kNone;
    }
    if (still_wanted()) return Step::kNone;  // failed, and nothing new was given
    busy_ = true;
    held_ = assigned_;
    forget_walk();
    retry_at_.reset();
    serves_since_.reset();
    state_ = Hosting::kOpening;
    return Step::kOpen;
}

void Tenancy::opened(base::Clock::Steady now) {
    busy_ = false;
    open_ = true;
    told_.reset();
    report_at_ = {};
    serves_since_ = now;
    if (still_wanted()) state_ = Hosting::kServing;
}

void Tenancy::fails() {
    busy_ = true;
    state_ = Hosting::kOffline;
}

bool Tenancy::failed(storage::ErrorCode why, base::Clock::Steady now) {
    busy_ = false;
    open_ = false;
    give_up_recalled();
    if (!still_wanted()) return false;
    state_ = Hosting::kOffline;
    plan_retry(why, now);
    return true;
}

void Tenancy::closed() {
    busy_ = false;
    open_ = false;
    given_up_ = held_->epoch;
    // An image of before may have come late.
    wanted_ = wanted_ && assigned_->epoch > given_up_;
    held_.reset();
    give_up_recalled();
}

void Tenancy::plan_retry(storage::ErrorCode code, base::Clock::Steady now) {
    // An epoch that lasted longer than the pause before it was a recovery: what fails now is
    // another fault.
    if (serves_since_ && now - *serves_since_ >= std::max(pause_, kFirstPause)) pause_ = {};
    disk_failed_at_.reset();
    switch (code) {
        // A new epoch cannot help: the whole incarnation is over, or a person has to look at a
        // file.
        case storage::ErrorCode::kFenced:
        case storage::ErrorCode::kCorrupt: retry_at_.reset(); return;
        // Somebody newer was here, so the controller already knows more; or the files are gone.
        // Neither is the volume's fault: no trial of it is waited for.
        case storage::ErrorCode::kExists:
        case storage::ErrorCode::kNotFound: retry_at_ = now + pause_; return;
        default: retry_at_ = now + pause_; disk_failed_at_ = now;
    }
}

bool Tenancy::is_due(base::Clock::Steady now) const {
    return !busy_ && !open_ && still_wanted() && held_ && retry_at_ && *retry_at_ <= now;
}

bool Tenancy::awaits_trial(std::optional<base::Clock::Steady> well_since) const {
    return disk_failed_at_ && (!well_since || *well_since < *disk_failed_at_);
}

void Tenancy::surrender() {
    given_up_ = held_->epoch;
    pause_ = std::clamp(pause_ * 2, kFirstPause, kLastPause);  // should the next one fail as well
    retry_at_.reset();
}

std::optional<base::LeaderEpoch> Tenancy::release_to_report(base::Clock::Steady now) {
    if (!owes_report() || now < report_at_) return std::nullopt;
    report_at_ = now + kReportPause;
    return assigned_->epoch;
}

const std::string& Tenancy::volume() const {
    static const std::string none;
    if (assigned_) return assigned_->volume;
    return held_ ? held_->volume : none;
}

std::optional<catalog::OpenedEpoch> Tenancy::news(const base::TopicPartition& id,
                                                  std::optional<base::LeaderEpoch> written) {
    if (busy_ || !open_ || !still_wanted()) return std::nullopt;
    const std::pair now(held_->epoch, written.value_or(base::kNoLeaderEpoch));
    if (told_ == now) return std::nullopt;
    told_ = now;
    return catalog::OpenedEpoch{id, now.first, now.second};
}

}  // namespace kaas::cluster
