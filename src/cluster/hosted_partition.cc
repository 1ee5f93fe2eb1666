#include "cluster/hosted_partition.h"

#include "base/clock.h"
#include "base/ids.h"
#include "base/log.h"
#include "catalog/change.h"
#include "cluster/partition_table.h"
#include "storage/error.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kaas::cluster {
namespace {

/// Between one epoch and the next: at once after the first failure, then this long, then twice as
/// long each time.
constexpr std::chrono::milliseconds kFirstPause{1'000};
constexpr std::chrono::milliseconds kLastPause{30'000};

}  // namespace

HostedPartition::HostedPartition(base::TopicPartition id, std::string directory)
    : id_(id), directory_(std::move(directory)) {}

bool HostedPartition::aim(std::optional<Tenure> tenure) {
    if (tenure && tenure->epoch <= given_up_) tenure.reset();
    if (tenure == wanted_) return false;
    wanted_ = std::move(tenure);
    return true;
}

void HostedPartition::strand(bool stranded) {
    if (std::exchange(stranded_, stranded) == stranded) return;
    if (!busy_ && !log_ && !wanted_) show(idle_state());
}

HostedPartition::Step HostedPartition::begin() {
    if (busy_) return Step::kNone;
    if (log_ && !still_wanted()) {
        busy_ = true;
        show(wanted_ ? Hosting::kOpening : idle_state());
        return Step::kClose;
    }
    if (log_ || !wanted_) {
        if (!log_) show(idle_state());
        return Step::kNone;
    }
    if (still_wanted()) return Step::kNone;  // failed, and nothing new was given
    busy_ = true;
    held_ = Tenure{wanted_->epoch, wanted_->volume, std::exchange(wanted_->walk, {})};
    retry_at_.reset();
    serves_since_.reset();
    show(Hosting::kOpening);
    return Step::kOpen;
}

void HostedPartition::opened(storage::Result<storage::LogPtr> result, base::Clock::Steady now) {
    busy_ = false;
    if (!result && !still_wanted()) return;
    if (!result) {
        base::log::warn("cluster", "{}: epoch {} did not open: {}", directory_, held_->epoch,
                        result.error().context);
        show(Hosting::kOffline);
        plan_retry(result.error().code, now);
        return;
    }
    log_ = std::move(*result);
    told_.reset();
    serves_since_ = now;
    if (still_wanted()) show(Hosting::kServing);
}

void HostedPartition::closed() {
    busy_ = false;
    given_up_ = held_->epoch;
    if (wanted_ && wanted_->epoch <= given_up_) wanted_.reset();  // an image of before came late
    let_go();
    held_.reset();
}

void HostedPartition::let_go() {
    if (log_->at_work()) leaving_.push_back(log_);
    log_.reset();
}

bool HostedPartition::earlier_at_rest() {
    std::erase_if(leaving_, [](const storage::LogPtr& log) { return !log->at_work(); });
    return leaving_.empty();
}

bool HostedPartition::at_rest() { return !busy_ && !copying && !log_ && earlier_at_rest(); }

void HostedPartition::failed(const storage::Error& why, base::Clock::Steady now) {
    base::log::warn("cluster", "{}: epoch {} has failed: {}", directory_, held_->epoch,
                    why.context);
    let_go();
    show(Hosting::kOffline);
    plan_retry(why.code, now);
}

void HostedPartition::plan_retry(storage::ErrorCode code, base::Clock::Steady now) {
    // An epoch that lasted was a recovery; what fails now is another fault.
    if (serves_since_ && now - *serves_since_ >= kLastPause) pause_ = {};
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

bool HostedPartition::is_due(base::Clock::Steady now) const {
    return !busy_ && !log_ && still_wanted() && held_ && retry_at_ && *retry_at_ <= now;
}

bool HostedPartition::awaits_trial(std::optional<base::Clock::Steady> well_since) const {
    return disk_failed_at_ && (!well_since || *well_since < *disk_failed_at_);
}

catalog::PartitionEpoch HostedPartition::surrender(base::Clock::Steady now) {
    // Once more later, should the report get lost; longer each time, should the next epochs fail as
    // well.
    given_up_ = held_->epoch;
    pause_ = std::clamp(pause_ * 2, kFirstPause, kLastPause);
    retry_at_ = now + pause_;
    return catalog::PartitionEpoch{id_, held_->epoch};
}

std::optional<catalog::OpenedEpoch> HostedPartition::news() {
    if (busy_ || !log_ || !still_wanted()) return std::nullopt;
    const catalog::OpenedEpoch now{id_, held_->epoch,
                                   log_->written_epoch().value_or(base::kNoLeaderEpoch)};
    if (told_ == now) return std::nullopt;
    told_ = now;
    return now;
}

void HostedPartition::show(Hosting state) {
    state_ = state;
    slot_->set(state, state == Hosting::kServing ? log_ : nullptr);
}

}  // namespace kaas::cluster
