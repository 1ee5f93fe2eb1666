#include "broker/coordination/slot_topics.h"

#include "base/executor.h"
#include "base/log.h"
#include "base/mutex.h"
#include "catalog/slot.h"
#include "cluster/admin.h"
#include "cluster/error.h"

#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace kaas::broker {
namespace {

/// Clients wait longer for an answer, and ask again when it says that there is no coordinator.
constexpr std::chrono::seconds kPatience{10};

}  // namespace

void SlotTopics::make(catalog::SlotKind kind, base::Executor& home, Done done) {
    {
        base::MutexLock lock(mutex_);
        auto& waiting = waiting_[kind];
        waiting.push_back({&home, std::move(done)});
        if (waiting.size() > 1) return;
    }
    cluster::CreateTopics request;
    request.topics.emplace_back().name = std::string(catalog::slot_topic(kind));
    request.deadline = clock_.now() + kPatience;
    controller_.create_topics(std::move(request),
                              {&home, [this, kind](auto outcome) { made(kind, outcome); }});
}

void SlotTopics::made(catalog::SlotKind kind,
                      const cluster::Result<std::vector<cluster::CreatedTopic>>& outcome) {
    if (!outcome) {
        base::log::warn("broker", "{} was not created: {}", catalog::slot_topic(kind),
                        outcome.error().context);
    } else if (const auto& made = outcome->front().outcome;
               !made && made.error().code != cluster::ErrorCode::kTopicAlreadyExists) {
        base::log::warn("broker", "{} was not created: {}", catalog::slot_topic(kind),
                        made.error().context);
    }
    std::vector<Waiter> waiters;
    {
        base::MutexLock lock(mutex_);
        waiters.swap(waiting_[kind]);
    }
    for (auto& [home, done] : waiters) home->post(std::move(done));
}

}  // namespace kaas::broker
