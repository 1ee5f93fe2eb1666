#pragma once

#include "base/clock.h"
#include "base/ids.h"
#include "base/mutex.h"
#include "catalog/change.h"
#include "catalog/image.h"
#include "catalog/model.h"
#include "cluster/hosted_partition.h"
#include "cluster/jobs.h"
#include "cluster/partition_table.h"
#include "cluster/place.h"
#include "cluster/release_patience.h"
#include "cluster/table_view.h"
#include "cluster/tenancy.h"
#include "cluster/versioned.h"
#include "cluster/write_trials.h"
#include "storage/error.h"
#include "storage/journal_sweeper.h"
#include "storage/log_config.h"
#include "storage/log_view.h"
#include "storage/partition_log.h"
#include "storage/volume.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

/// The inside of `PartitionTable`, for its own sources.
namespace kaas::cluster {

struct LocalTopic {
    std::shared_ptr<const storage::LogConfig> config;
    std::shared_ptr<const std::string> directory;
    std::vector<HostedPartitionPtr> partitions;  ///< null where this broker never had the partition
};

/// A deleted topic on its way out.
struct Removal {
    catalog::Deletion deletion;
    std::vector<HostedPartitionPtr> closing;
    bool busy = false;
    std::string said;  ///< why its files stay: told once, not with each attempt
};

/// What is said once the lock is gone.
struct Outbox {
    std::vector<catalog::ImageVersion> applied;
    std::vector<catalog::OpenedEpoch> opened;
    std::vector<catalog::PartitionEpoch> released;
    std::vector<MovedEpoch> moved;
    std::vector<base::TopicId> reclaimed;
};

/// Shared with the jobs that it has on the I/O pool.
class PartitionTable::Impl : public std::enable_shared_from_this<Impl> {
public:
    explicit Impl(Options options)
        : options_(std::move(options)),
          jobs_(std::make_shared<Jobs>(*options_.io_pool, options_.width)),
          trials_(fmt::format("kaas.probe.{}.logs", options_.self), *options_.clock),
          views_(first_view()),
          places_(std::make_shared<const Places>(options_.places)),
          next_retention_check_(options_.clock->now() + options_.upkeep.first),
          next_producer_check_(options_.clock->now() + options_.upkeep.producers) {}

    bool apply(const catalog::ImagePtr& next) KAAS_EXCLUDES(mutex_);
    void tick() KAAS_EXCLUDES(mutex_);
    void set_place(const std::string& volume, std::optional<Place> place) KAAS_EXCLUDES(mutex_);
    bool drain(std::size_t width, std::chrono::milliseconds patience) KAAS_EXCLUDES(mutex_);
    bool close(std::chrono::milliseconds patience) KAAS_EXCLUDES(mutex_);
    [[nodiscard]] Move move(const base::TopicPartition& id, const std::string& volume)
        KAAS_EXCLUDES(mutex_);
    [[nodiscard]] std::vector<Stored> stored() const KAAS_EXCLUDES(mutex_);
    [[nodiscard]] std::vector<storage::LogPtr> list_open_logs() const KAAS_EXCLUDES(mutex_);
    [[nodiscard]] std::size_t count(Hosting state) const KAAS_EXCLUDES(mutex_);
    [[nodiscard]] const Versioned<TableView>& views() const { return views_; }

private:
    static std::shared_ptr<const TableView> first_view();
    void host(const catalog::Topic& topic, bool new_configs, TableView& view,
              const std::shared_ptr<Batch>& batch) KAAS_REQUIRES(mutex_);
    /// Makes room for the partitions that are wanted here; true when there are more than before.
    [[nodiscard]] bool extend(const catalog::Topic& topic, LocalTopic& local) const
        KAAS_REQUIRES(mutex_);
    static void show(const catalog::Topic& topic, const LocalTopic& local, TableView& view);
    void drop(const catalog::Topic& topic, TableView& view, const std::shared_ptr<Batch>& batch)
        KAAS_REQUIRES(mutex_);
    void aim(const HostedPartitionPtr& partition, std::optional<Tenure> tenure,
             const std::shared_ptr<Batch>& batch) KAAS_REQUIRES(mutex_);

    /// Ends its life on the volume, which is another's now; gives the log that the caller ends.
    [[nodiscard]] storage::LogPtr start_over(const HostedPartitionPtr& partition)
        KAAS_REQUIRES(mutex_);
    /// False when nothing is led any more.
    [[nodiscard]] bool give_back_some(std::size_t width) KAAS_EXCLUDES(mutex_);
    /// False when there was none until `deadline`.
    [[nodiscard]] bool await_change(base::Clock::Steady deadline) KAAS_EXCLUDES(mutex_);
    void note_change() KAAS_REQUIRES(mutex_);

    void go_on(const HostedPartitionPtr& partition) KAAS_REQUIRES(mutex_);
    void report_release(HostedPartition& partition) KAAS_REQUIRES(mutex_);
    /// A partition whose log is to be opened.
    struct Opening {
        HostedPartitionPtr partition;
        int life;
        Tenure tenure;
        std::shared_ptr<const storage::LogConfig> config{};
        storage::Result<storage::LogPtr> log{nullptr};
    };
    /// Opens some of those that wait for it, all of one volume, together.
    void open_some() KAAS_EXCLUDES(mutex_);
    [[nodiscard]] std::vector<Opening> take_openings() KAAS_REQUIRES(mutex_);
    /// Partitions that wait for a step.
    template <class Step>
    struct Queue {
        std::deque<Step> steps;
        std::size_t peak = 0;  ///< how many there were since there was none

        void push(Step step) {
            if (steps.empty()) peak = 0;
            steps.push_back(std::move(step));
            peak = std::max(peak, steps.size());
        }
    };
    /// The next of them, all of one volume: many at once cost less each, few are done sooner, and
    /// every worker should have some.
    template <class Step>
    [[nodiscard]] std::vector<Step> take_share(Queue<Step>& queue) const KAAS_REQUIRES(mutex_);
    static void open_logs_of(std::vector<Opening>& openings, const Places& places);
    [[nodiscard]] static storage::Result<storage::PartitionLogOptions> log_options(
        const Opening& opening, const Places& places);
    /// What came of them; gives the logs that nobody wants, for they are of an earlier life.
    [[nodiscard]] std::vector<storage::LogPtr> take_opened(std::vector<Opening> openings)
        KAAS_EXCLUDES(mutex_);
    void tell_progress() KAAS_REQUIRES(mutex_);
    /// A partition whose log is to be closed.
    struct Closing {
        HostedPartitionPtr partition;
        int life;
        storage::LogPtr log;
        bool discarded;
    };
    /// Closes some of those that wait for it, all of one volume, together.
    void close_some() KAAS_EXCLUDES(mutex_);
    void release(std::span<const Closing> closings) const KAAS_EXCLUDES(mutex_);
    void finish(Batch& batch) KAAS_REQUIRES(mutex_);

    void carry(const HostedPartitionPtr& partition) KAAS_EXCLUDES(mutex_);
    [[nodiscard]] bool is_carried(const HostedPartition& partition, const storage::LogPtr& log,
                                  const std::string& volume) const KAAS_REQUIRES(mutex_);
    [[nodiscard]] storage::Result<bool> copy(const HostedPartitionPtr& partition,
                                             const storage::LogPtr& log, const std::string& volume)
        KAAS_EXCLUDES(mutex_);
    [[nodiscard]] bool hand_over(const HostedPartitionPtr& partition, const storage::LogPtr& log,
                                 const std::string& volume) KAAS_EXCLUDES(mutex_);
    [[nodiscard]] bool remove_copy(const HostedPartition& partition,
                                   const std::string& volume) const KAAS_EXCLUDES(mutex_);
    /// True when a partition of the topic has, or is about to have, a log on the volume.
    [[nodiscard]] bool topic_needs(const base::TopicId& topic, const std::string& volume) const
        KAAS_EXCLUDES(mutex_);
    static void tell_old_journals(const HostedPartition& partition, const Tenure& tenure,
                                  const Places& places);
    [[nodiscard]] bool note_left_volumes(HostedPartition& partition, const Tenure& tenure)
        KAAS_EXCLUDES(mutex_);
    void leave_old_volumes(const HostedPartitionPtr& partition) KAAS_EXCLUDES(mutex_);
    void start_carrying(const HostedPartitionPtr& partition) KAAS_REQUIRES(mutex_);

    void remove_when_closed(const base::TopicId& topic) KAAS_REQUIRES(mutex_);
    void remove(const catalog::Deletion& deletion) KAAS_EXCLUDES(mutex_);
    [[nodiscard]] storage::Result<void> remove_files(const catalog::Deletion& deletion) const;

    /// Sends what is in the outbox, and lets queued jobs run.
    void flush() KAAS_EXCLUDES(mutex_);
    [[nodiscard]] std::shared_ptr<const Places> places() const KAAS_EXCLUDES(mutex_);
    void look_after_all() KAAS_REQUIRES(mutex_);
    void look_after(HostedPartition& partition, base::Clock::Steady now) KAAS_REQUIRES(mutex_);
    void try_writes(const std::string& name, storage::Volume& volume) KAAS_EXCLUDES(mutex_);
    [[nodiscard]] std::vector<storage::LogPtr> open_logs() const KAAS_REQUIRES(mutex_);
    [[nodiscard]] std::vector<storage::LogPtr> stalled_logs() const KAAS_REQUIRES(mutex_);
    void keep_house() KAAS_EXCLUDES(mutex_);
    void sweep_journals(const catalog::ImagePtr& image) KAAS_EXCLUDES(mutex_);
    void remove_dropped(const std::vector<storage::LogPtr>& logs) KAAS_EXCLUDES(mutex_);

    const Options options_;
    const std::shared_ptr<Jobs> jobs_;
    WriteTrials trials_;
    Versioned<TableView> views_;

    mutable base::Mutex mutex_;
    base::CondVar changed_;
    /// A job goes by those that it found; one of an earlier life changes nothing any more.
    std::shared_ptr<const Places> places_ KAAS_GUARDED_BY(mutex_);
    std::unordered_map<base::TopicId, LocalTopic> topics_ KAAS_GUARDED_BY(mutex_);
    std::unordered_map<base::TopicId, Removal> removals_ KAAS_GUARDED_BY(mutex_);
    Outbox outbox_ KAAS_GUARDED_BY(mutex_);
    bool progress_said_ KAAS_GUARDED_BY(mutex_) = false;
    base::Clock::Steady next_progress_ KAAS_GUARDED_BY(mutex_){};
    Queue<Opening> openings_ KAAS_GUARDED_BY(mutex_);  ///< a job each is among `jobs_`
    Queue<Closing> closings_ KAAS_GUARDED_BY(mutex_);  ///< a job each is among `jobs_`
    bool draining_ KAAS_GUARDED_BY(mutex_) = false;
    /// Of images, and of logs that open and close: a drain looks after each whether more may go.
    std::uint64_t changes_ KAAS_GUARDED_BY(mutex_) = 0;
    std::uint64_t seen_changes_ KAAS_GUARDED_BY(mutex_) = 0;
    bool closing_ KAAS_GUARDED_BY(mutex_) = false;
    base::Clock::Steady next_retention_check_ KAAS_GUARDED_BY(mutex_);
    base::Clock::Steady next_producer_check_ KAAS_GUARDED_BY(mutex_);
    bool reclaiming_ KAAS_GUARDED_BY(mutex_) = false;
    bool sweeping_ KAAS_GUARDED_BY(mutex_) = false;
    std::map<base::Incarnation, storage::JournalSweeper> sweepers_;  ///< of the sweeping job
    ReleasePatience release_patience_ KAAS_GUARDED_BY(mutex_){*options_.clock,
                                                              options_.release_patience};
};

template <class Step>
std::vector<Step> PartitionTable::Impl::take_share(Queue<Step>& queue) const {
    constexpr std::size_t kMost = 1'000;
    auto& steps = queue.steps;
    std::vector<Step> taken;
    if (steps.empty()) return taken;
    const auto volume = steps.front().partition->tenancy().tenure().volume;
    const auto place = places_->find(volume);
    const bool shares_syncs = place != places_->end() && place->second.volume->can_sync_all();
    const auto least = shares_syncs ? storage::kWorthSyncingAll : 1;
    const auto share = std::clamp(queue.peak / options_.width, least, kMost);
    while (!steps.empty() && taken.size() < share &&
           steps.front().partition->tenancy().tenure().volume == volume) {
        taken.push_back(std::move(steps.front()));
        steps.pop_front();
    }
    return taken;
}

}  // namespace kaas::cluster
