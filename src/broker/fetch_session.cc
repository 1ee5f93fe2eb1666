#include "broker/fetch_session.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <limits>
#include <span>
#include <string>

namespace kaas::broker {

using wire::ErrorCode;

std::size_t FetchSession::Hash::operator()(const FetchTarget* target) const {
    return std::hash<std::string>{}(*target->name) ^ std::hash<base::Uuid>{}(target->id) ^
           static_cast<std::size_t>(target->partition) * 31;
}

base::Clock::Steady FetchSession::last_used() const {
    base::MutexLock lock(mutex_);
    return last_used_;
}

std::size_t FetchSession::size() const {
    base::MutexLock lock(mutex_);
    return entries_.size();
}

void FetchSession::put(const FetchTarget& target) {
    auto known = by_target_.find(&target);
    if (known != by_target_.end()) {
        // The key is the entry's own target, so only what is not part of it may change.
        FetchTarget& kept = known->second->target;
        kept.fetch_offset = target.fetch_offset;
        kept.max_bytes = target.max_bytes;
        kept.current_leader_epoch = target.current_leader_epoch;
        kept.last_fetched_epoch = target.last_fetched_epoch;
        return;
    }
    entries_.push_back({target});
    by_target_.emplace(&entries_.back().target, std::prev(entries_.end()));
}

void FetchSession::forget(const FetchTarget& target) {
    auto known = by_target_.find(&target);
    if (known == by_target_.end()) return;
    auto entry = known->second;
    by_target_.erase(known);
    entries_.erase(entry);
}

FetchContext FetchSession::advance(std::int32_t epoch, bool by_id,
                                   std::span<const FetchTarget> named,
                                   std::span<const FetchTarget> forgotten,
                                   base::Clock::Steady now) {
    base::MutexLock lock(mutex_);
    FetchContext context;
    if (epoch != epoch_) {
        context.error = ErrorCode::kInvalidFetchSessionEpoch;
        return context;
    }
    if (by_id != by_id_) {
        context.error = ErrorCode::kFetchSessionTopicIdError;
        return context;
    }
    for (const auto& target : named) put(target);
    for (const auto& target : forgotten) forget(target);
    last_used_ = now;
    // 0 and -1 have meanings of their own, so the count starts again at 1.
    epoch_ = epoch_ == std::numeric_limits<std::int32_t>::max() ? 1 : epoch_ + 1;
    context.epoch = epoch_;
    context.targets.reserve(entries_.size());
    for (const auto& entry : entries_) context.targets.push_back(entry.target);
    return context;
}

void FetchSession::fill(std::span<const FetchTarget> targets,
                        std::span<const FetchOutcome> outcomes) {
    base::MutexLock lock(mutex_);
    for (std::size_t i = 0; i < targets.size(); ++i) {
        put(targets[i]);
        auto& entry = *by_target_.at(&targets[i]);
        entry.told_high_watermark =
            outcomes[i].error == ErrorCode::kNone ? outcomes[i].high_watermark : -1;
        entry.told_log_start = outcomes[i].log_start;
    }
}

bool FetchSession::is_news(const Entry& entry, const FetchOutcome& outcome) {
    return outcome.error != ErrorCode::kNone || outcome.has_records || outcome.diverges ||
           outcome.high_watermark != entry.told_high_watermark ||
           outcome.log_start != entry.told_log_start;
}

FetchAnswerPlan FetchSession::tell(const FetchContext& context,
                                   std::span<const FetchOutcome> outcomes) {
    base::MutexLock lock(mutex_);
    FetchAnswerPlan plan;
    if (context.epoch != epoch_) {
        plan.error = ErrorCode::kInvalidFetchSessionEpoch;
        return plan;
    }
    plan.session_id = id_;
    plan.include.resize(outcomes.size());
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
        auto known = by_target_.find(&context.targets[i]);
        if (known == by_target_.end()) continue;
        Entry& entry = *known->second;
        plan.include[i] = is_news(entry, outcomes[i]);
        if (!plan.include[i]) continue;
        // What was answered with an error is told again, whatever comes next.
        bool good = outcomes[i].error == ErrorCode::kNone;
        entry.told_high_watermark = good ? outcomes[i].high_watermark : -1;
        entry.told_log_start = outcomes[i].log_start;
        if (outcomes[i].has_records) entries_.splice(entries_.end(), entries_, known->second);
    }
    return plan;
}

}  // namespace kaas::broker
