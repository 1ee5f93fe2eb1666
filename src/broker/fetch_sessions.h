#pragma once

#include "base/clock.h"
#include "base/metrics.h"
#include "base/mutex.h"
#include "base/uuid.h"
#include "wire/error_code.h"
#include "wire/messages/fetch.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace kaas::broker {

/// One partition that a fetch asks for.
struct FetchTarget {
    std::shared_ptr<const std::string> name;  ///< empty when the topic is given by id
    base::Uuid id;                            ///< zero when the topic is given by name
    std::int32_t partition = 0;
    std::int64_t fetch_offset = 0;
    std::int32_t max_bytes = 0;
    std::int32_t current_leader_epoch = -1;
    std::int32_t last_fetched_epoch = -1;

    [[nodiscard]] bool same_partition(const FetchTarget& other) const {
        return partition == other.partition && id == other.id && *name == *other.name;
    }
};

/// What a client was last told of a partition; it hears of it again when something differs
/// (KIP-227).
struct FetchOutcome {
    wire::ErrorCode error = wire::ErrorCode::kNone;
    std::int64_t high_watermark = -1;
    std::int64_t log_start = -1;
    bool has_records = false;
    bool diverges = false;
};

class FetchSession;

/// How one request is to be answered.
struct FetchContext {
    wire::ErrorCode error = wire::ErrorCode::kNone;  ///< set: answer this and nothing else
    std::vector<FetchTarget> targets;
    std::shared_ptr<FetchSession> session;  ///< of an incremental fetch
    bool wants_session = false;             ///< a full fetch that may begin one
    std::int32_t epoch = 0;                 ///< that the session has while this request runs
};

/// What goes into the answer.
struct FetchAnswerPlan {
    wire::ErrorCode error = wire::ErrorCode::kNone;
    std::int32_t session_id = 0;
    std::vector<bool> include;  ///< by target
};

/// The fetch sessions of a broker (KIP-227): a client names all partitions once, later only what
/// changed. Bounded by `max.incremental.fetch.session.cache.slots`; a new session may push out one
/// that rested for two minutes, or a smaller one that is as old (Apache
/// `FetchSession.FetchSessionCache`). Thread: any.
class FetchSessions {
public:
    static constexpr std::chrono::minutes kMinEviction{2};

    FetchSessions(std::size_t slots, const base::Clock& clock, base::metrics::Registry& metrics);
    ~FetchSessions();

    /// Reads what the request says about its session, and takes over what it changes.
    [[nodiscard]] FetchContext begin(const wire::FetchRequest& request, bool by_id)
        KAAS_EXCLUDES(mutex_);
    /// Decides what is told, `outcomes` being those of `context.targets`; begins a session if one
    /// was wanted.
    [[nodiscard]] FetchAnswerPlan finish(const FetchContext& context,
                                         std::span<const FetchOutcome> outcomes, bool by_id)
        KAAS_EXCLUDES(mutex_);

    [[nodiscard]] std::size_t size() const KAAS_EXCLUDES(mutex_);

private:
    [[nodiscard]] std::shared_ptr<FetchSession> find(std::int32_t id) KAAS_REQUIRES(mutex_);
    void remove(std::int32_t id) KAAS_REQUIRES(mutex_);
    [[nodiscard]] bool make_room(std::size_t partitions) KAAS_REQUIRES(mutex_);
    [[nodiscard]] std::int32_t unused_id() KAAS_REQUIRES(mutex_);
    [[nodiscard]] FetchAnswerPlan finish_full(const FetchContext& context,
                                              std::span<const FetchOutcome> outcomes, bool by_id)
        KAAS_EXCLUDES(mutex_);

    const std::size_t slots_;
    const base::Clock& clock_;
    base::metrics::Gauge& count_;
    base::metrics::Counter& evictions_;
    mutable base::Mutex mutex_;
    std::unordered_map<std::int32_t, std::shared_ptr<FetchSession>> sessions_
        KAAS_GUARDED_BY(mutex_);
};

}  // namespace kaas::broker
