#pragma once

#include "base/clock.h"
#include "base/ids.h"
#include "base/mutex.h"
#include "catalog/change.h"
#include "catalog/image.h"
#include "cluster/admin.h"
#include "cluster/draft.h"
#include "cluster/error.h"
#include "cluster/link_messages.h"
#include "cluster/mover.h"
#include "cluster/reign.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

namespace kaas::cluster {

/// A batch of changes that is durable and checked: what brokers are told.
struct Push {
    catalog::ImagePtr image;               ///< after all of them
    std::vector<catalog::Change> changes;  ///< in order; together they lead to `image`
};

/// Incarnations of one broker, by volume.
using Sessions = decltype(catalog::Broker::sessions);

struct ControllerOptions {
    const base::Clock* clock = &base::Clock::system();
    ControllerConfig config;
    /// Gets each push in order, on the thread of `step`.
    std::function<void(const Push&)> push;
    /// Called, from any thread, when there is work for `step`.
    std::function<void()> wake = [] {};
};

/// The one writer of the cluster's metadata while it reigns. It outlives its reigns: between two,
/// and before the first, it answers kNotController and keeps what it is told for the next.
///
/// Requests queue up; `step` takes all that wait, validates each against what the ones before it
/// did, writes their lines with one fsync, checks its own session, and only then pushes the image
/// and answers (DESIGN rule 7). The first failure of log or check ends the reign: every request in
/// hand gets kNotController, and only the next reign, which reads the log, can say what became of
/// its lines. A create, delete or growth is answered when every living broker has applied it, or at
/// its deadline.
///
/// Thread: requests, reports and `applied` from any; the rest from one at a time, which may block
/// (the control thread).
class Controller {
public:
    explicit Controller(ControllerOptions options);
    /// Answers what still waits with kNotController.
    ~Controller();
    Controller(const Controller&) = delete;
    Controller& operator=(const Controller&) = delete;

    /// Begins a reign, whose image brokers have been given. Requires: none lasts, and the epoch is
    /// above every one before.
    void begin(Reign reign);

    void create_topics(CreateTopics request, Reply<std::vector<CreatedTopic>> reply);
    void delete_topics(DeleteTopics request, Reply<std::vector<DeletedTopic>> reply);
    void create_partitions(CreatePartitions request, Reply<std::vector<GrownTopic>> reply);
    void elect_leaders(ElectLeaders request, Reply<std::vector<TopicOutcomes>> reply);
    void alter_reassignments(AlterReassignments request, Reply<std::vector<TopicOutcomes>> reply);
    void list_reassignments(ListReassignments request,
                            Reply<std::vector<OngoingReassignments>> reply);
    void unregister_broker(base::BrokerId broker, Reply<std::monostate> reply);
    void alter_configs(AlterConfigs request, Reply<std::monostate> reply);
    /// `count` is positive.
    void allocate_producer_ids(std::int32_t count, Reply<ProducerIdBlock> reply);

    /// A broker joins or comes back with new sessions. In the same step its partitions are renewed,
    /// and those that nobody leads are assigned; then its share of the rest is asked back for it,
    /// little by little. The caller has proven every earlier session
    /// of it marked or ended.
    void register_broker(catalog::Broker broker, Reply<std::monostate> reply);
    /// Gives nothing new to a broker from now on; what it releases goes to brokers that stay.
    void drain_broker(base::BrokerId broker, Reply<std::monostate> reply);
    /// A broker has left: it released everything, or every session of it is marked. What it led is
    /// assigned to others in the same step.
    void remove_broker(base::BrokerId broker, Reply<std::monostate> reply);
    /// As above for these sessions of a broker only, by volume; it is gone when none is left. One
    /// that the broker has replaced meanwhile is not touched: the new one is not marked.
    void remove_sessions(base::BrokerId broker, Sessions marked, Reply<std::monostate> reply);

    /// What holders report about their partitions: kept until a reign has acted on it; dropped when
    /// it is stale by then.
    void released(std::vector<catalog::PartitionEpoch> epochs);
    void moved(std::vector<MovedEpoch> epochs);
    void opened(std::vector<catalog::OpenedEpoch> epochs);
    /// No volume has anything left of a deleted topic.
    void reclaimed(base::TopicId topic);
    /// All that a report says of partitions and topics.
    void hear(Report report);
    /// `broker` has applied the image of just this version, or, with `and_before`, one that holds
    /// every push up to it: it routes by it, and the logs that the image gave it are open, or have
    /// failed.
    void applied(base::BrokerId broker, catalog::ImageVersion version, bool and_before = false);

    /// Between reigns: what holders have told it and no reign of it has acted on, for the
    /// controller of another process.
    [[nodiscard]] Report hand_over() KAAS_EXCLUDES(mutex_);

    /// Does all that waits, and answers what is due. Gives the time by which it wants to be called
    /// again.
    base::Clock::Steady step();
    /// Shows watchers that the reign goes on. A failure proves nothing, unless it is kFenced, which
    /// ends the reign.
    void beat();
    /// Ends the reign in good order: the log gets its last line.
    void resign();

    /// Any thread.
    [[nodiscard]] bool reigning() const { return reigning_.load(std::memory_order_acquire); }
    /// What ended the last reign; empty while one lasts. kFenced: somebody else has taken office.
    [[nodiscard]] const std::optional<Error>& ended_by() const { return ended_by_; }

private:
    /// How a request ends.
    enum class Verdict {
        kDone,      ///< durable, checked, and applied by those who must know
        kTimedOut,  ///< durable and checked, but not everybody has applied it in time
        kLost,      ///< the reign is over; the changes may stand or not
    };
    using Answer = std::move_only_function<void(Verdict)>;
    struct Job {
        std::move_only_function<Answer(Draft&)> plan;  ///< does the request to a draft
        /// Set: answered when living brokers have applied what it changed, or at this time.
        std::optional<base::Clock::Steady> spread_by;
    };
    struct Waiting {
        catalog::ImageVersion version;
        std::set<base::BrokerId> brokers;  ///< that have not applied it
        base::Clock::Steady deadline;
        Answer answer;
    };
    /// Need no answer, so they are gathered for the next good step. Sets: holders repeat themselves
    /// while nobody reigns.
    struct Reports {
        std::set<catalog::PartitionEpoch> released;
        std::vector<MovedEpoch> moved;
        std::set<catalog::OpenedEpoch> opened;
        std::set<base::TopicId> reclaimed;
    };

    void enqueue(Job job) KAAS_EXCLUDES(mutex_);
    template <class T>
    [[nodiscard]] static Answer answer_with(Result<T> planned, Reply<T> reply);
    template <class Add>
    void report(Add add) KAAS_EXCLUDES(mutex_);
    [[nodiscard]] bool commit_and_check(const Draft& draft);
    static void add_reports(const Reports& reports, Draft& draft);
    static void add_released(const std::set<catalog::PartitionEpoch>& released, Draft& draft);
    static void add_moved(const MovedEpoch& moved, Draft& draft);
    /// What a step has taken, and could not act on.
    void put_back(Reports reports) KAAS_EXCLUDES(mutex_);
    void publish(Draft draft, std::vector<Waiting> waiting) KAAS_EXCLUDES(mutex_);
    /// Answers what `due` picks out of those who wait.
    template <class Due>
    void settle(Verdict verdict, Due due) KAAS_EXCLUDES(mutex_);
    /// Answers who is late; gives the time to look again.
    [[nodiscard]] base::Clock::Steady settle_late(bool idle) KAAS_EXCLUDES(mutex_);
    void give_up(Error why);
    void end() KAAS_EXCLUDES(mutex_);
    void compact();
    void tidy();

    const base::Clock& clock_;
    const ControllerConfig config_;
    const std::function<void(const Push&)> push_;
    const std::function<void()> wake_;

    // Of the thread that steps.
    std::optional<Reign> reign_;
    catalog::ImagePtr image_;         ///< as the reign has left it so far
    std::int64_t next_producer_ = 0;  ///< within the epoch
    bool untidy_ = true;              ///< older logs may be there to remove
    /// The predecessor's last lines may say who gave up what, and no more who got it.
    bool look_for_homeless_ = false;
    Mover mover_;
    std::optional<Error> ended_by_;

    std::atomic<bool> reigning_ = false;
    base::Mutex mutex_;
    std::vector<Job> queue_ KAAS_GUARDED_BY(mutex_);
    Reports reports_ KAAS_GUARDED_BY(mutex_);
    std::vector<Waiting> waiting_ KAAS_GUARDED_BY(mutex_);
};

}  // namespace kaas::cluster
