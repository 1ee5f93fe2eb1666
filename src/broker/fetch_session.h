#pragma once

#include "base/clock.h"
#include "base/mutex.h"
#include "broker/fetch_sessions.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <list>
#include <span>
#include <unordered_map>
#include <vector>

namespace kaas::broker {

/// One client's standing fetch (KIP-227).
/// Thread: any; a client that uses it on two connections at once loses by its epoch.
class FetchSession {
public:
    static constexpr std::int32_t kFinalEpoch = -1;
    static constexpr std::int32_t kInitialEpoch = 0;

    FetchSession(std::int32_t id, bool by_id, base::Clock::Steady now)
        : id_(id), by_id_(by_id), created_(now), last_used_(now) {}

    [[nodiscard]] std::int32_t id() const { return id_; }
    [[nodiscard]] base::Clock::Steady created() const { return created_; }
    [[nodiscard]] base::Clock::Steady last_used() const KAAS_EXCLUDES(mutex_);
    [[nodiscard]] std::size_t size() const KAAS_EXCLUDES(mutex_);

    /// Adds, changes and forgets what an incremental request says, moves to the next epoch, and
    /// gives every partition in the order it is to be read. Errors: a wrong epoch, or names where
    /// ids were used.
    [[nodiscard]] FetchContext advance(std::int32_t epoch, bool by_id,
                                       std::span<const FetchTarget> named,
                                       std::span<const FetchTarget> forgotten,
                                       base::Clock::Steady now) KAAS_EXCLUDES(mutex_);
    /// A full fetch's partitions and what its answer says of them.
    void fill(std::span<const FetchTarget> targets, std::span<const FetchOutcome> outcomes)
        KAAS_EXCLUDES(mutex_);
    /// Which of the targets of `context` have news; partitions that gave records go to the end of
    /// the order, so that a full answer does not starve the others.
    [[nodiscard]] FetchAnswerPlan tell(const FetchContext& context,
                                       std::span<const FetchOutcome> outcomes)
        KAAS_EXCLUDES(mutex_);

private:
    struct Entry {
        FetchTarget target;
        std::int64_t told_high_watermark = -1;
        std::int64_t told_log_start = -1;
    };
    struct Hash {
        std::size_t operator()(const FetchTarget* target) const;
    };
    struct Same {
        bool operator()(const FetchTarget* a, const FetchTarget* b) const {
            return a->same_partition(*b);
        }
    };
    using Entries = std::list<Entry>;

    void put(const FetchTarget& target) KAAS_REQUIRES(mutex_);
    void forget(const FetchTarget& target) KAAS_REQUIRES(mutex_);
    [[nodiscard]] static bool is_news(const Entry& entry, const FetchOutcome& outcome);

    const std::int32_t id_;
    const bool by_id_;
    const base::Clock::Steady created_;
    mutable base::Mutex mutex_;
    base::Clock::Steady last_used_ KAAS_GUARDED_BY(mutex_);
    std::int32_t epoch_ KAAS_GUARDED_BY(mutex_) = kInitialEpoch + 1;
    Entries entries_ KAAS_GUARDED_BY(mutex_);
    std::unordered_map<const FetchTarget*, Entries::iterator, Hash, Same> by_target_
        KAAS_GUARDED_BY(mutex_);
};

}  // namespace kaas::broker
