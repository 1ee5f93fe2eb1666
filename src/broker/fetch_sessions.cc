#include "broker/fetch_sessions.h"

#include "broker/fetch_session.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace kaas::broker {
namespace {

using wire::ErrorCode;

std::vector<FetchTarget> named_targets(const wire::FetchRequest& request, bool by_id) {
    std::vector<FetchTarget> targets;
    for (const auto& topic : request.topics) {
        auto name = std::make_shared<const std::string>(by_id ? "" : topic.topic.str());
        for (const auto& partition : topic.partitions) {
            targets.push_back({.name = name,
                               .id = topic.topic_id,
                               .partition = partition.partition,
                               .fetch_offset = partition.fetch_offset,
                               .max_bytes = partition.partition_max_bytes,
                               .current_leader_epoch = partition.current_leader_epoch,
                               .last_fetched_epoch = partition.last_fetched_epoch});
        }
    }
    return targets;
}

std::vector<FetchTarget> forgotten_targets(const wire::FetchRequest& request, bool by_id) {
    std::vector<FetchTarget> targets;
    for (const auto& topic : request.forgotten_topics_data) {
        auto name = std::make_shared<const std::string>(by_id ? "" : topic.topic.str());
        for (auto partition : topic.partitions) {
            targets.push_back({.name = name, .id = topic.topic_id, .partition = partition});
        }
    }
    return targets;
}

}  // namespace

FetchSessions::FetchSessions(std::size_t slots, const base::Clock& clock,
                             base::metrics::Registry& metrics)
    : slots_(slots),
      clock_(clock),
      count_(metrics.gauge("kaas_fetch_sessions", "Incremental fetch sessions (KIP-227).")),
      evictions_(metrics.counter("kaas_fetch_session_evictions_total",
                                 "Fetch sessions that had to make room for others.")) {}

FetchSessions::~FetchSessions() = default;

std::size_t FetchSessions::size() const {
    base::MutexLock lock(mutex_);
    return sessions_.size();
}

FetchContext FetchSessions::begin(const wire::FetchRequest& request, bool by_id) {
    std::vector<FetchTarget> named = named_targets(request, by_id);
    if (request.session_epoch != FetchSession::kInitialEpoch &&
        request.session_epoch != FetchSession::kFinalEpoch) {
        std::shared_ptr<FetchSession> session;
        {
            base::MutexLock lock(mutex_);
            session = find(request.session_id);
        }
        if (session == nullptr) {
            FetchContext refused;
            refused.error = ErrorCode::kFetchSessionIdNotFound;
            return refused;
        }
        auto forgotten = forgotten_targets(request, by_id);
        FetchContext context =
            session->advance(request.session_epoch, by_id, named, forgotten, clock_.now());
        if (context.error != ErrorCode::kNone) return context;
        if (!context.targets.empty()) {
            context.session = std::move(session);
            return context;
        }
        base::MutexLock lock(mutex_);
        remove(session->id());  // nothing is left in it
        return context;
    }
    if (request.session_id != 0) {
        base::MutexLock lock(mutex_);
        remove(request.session_id);
    }
    FetchContext context;
    context.targets = std::move(named);
    context.wants_session = request.session_epoch == FetchSession::kInitialEpoch;
    return context;
}

FetchAnswerPlan FetchSessions::finish(const FetchContext& context,
                                      std::span<const FetchOutcome> outcomes, bool by_id) {
    if (context.session != nullptr) return context.session->tell(context, outcomes);
    return finish_full(context, outcomes, by_id);
}

FetchAnswerPlan FetchSessions::finish_full(const FetchContext& context,
                                           std::span<const FetchOutcome> outcomes, bool by_id) {
    FetchAnswerPlan plan;
    plan.include.assign(outcomes.size(), true);
    if (!context.wants_session) return plan;
    base::MutexLock lock(mutex_);
    if (!make_room(context.targets.size())) return plan;
    auto session = std::make_shared<FetchSession>(unused_id(), by_id, clock_.now());
    session->fill(context.targets, outcomes);
    plan.session_id = session->id();
    sessions_.emplace(session->id(), std::move(session));
    count_.set(static_cast<std::int64_t>(sessions_.size()));
    return plan;
}

std::shared_ptr<FetchSession> FetchSessions::find(std::int32_t id) {
    auto at = sessions_.find(id);
    return at == sessions_.end() ? nullptr : at->second;
}

void FetchSessions::remove(std::int32_t id) {
    sessions_.erase(id);
    count_.set(static_cast<std::int64_t>(sessions_.size()));
}

bool FetchSessions::make_room(std::size_t partitions) {
    if (sessions_.size() < slots_) return true;
    if (slots_ == 0) return false;
    auto now = clock_.now();
    auto oldest = std::ranges::min_element(
        sessions_, {}, [](const auto& entry) { return entry.second->last_used(); });
    auto smallest = std::ranges::min_element(
        sessions_, {}, [](const auto& entry) { return entry.second->size(); });
    auto victim = sessions_.end();
    if (now - oldest->second->last_used() > kMinEviction) {
        victim = oldest;
    } else if (smallest->second->size() < partitions &&
               now - smallest->second->created() > kMinEviction) {
        victim = smallest;
    }
    if (victim == sessions_.end()) return false;
    evictions_.add();
    remove(victim->first);
    return true;
}

std::int32_t FetchSessions::unused_id() {
    // Random, so that a client of an earlier life of this broker does not hit another's session.
    thread_local std::mt19937 random{std::random_device{}()};
    std::uniform_int_distribution<std::int32_t> any(1, std::numeric_limits<std::int32_t>::max());
    for (;;) {
        std::int32_t id = any(random);
        if (!sessions_.contains(id)) return id;
    }
}

}  // namespace kaas::broker
