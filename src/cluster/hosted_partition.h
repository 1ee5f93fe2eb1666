#pragma once

#include "base/clock.h"
#include "base/ids.h"
#include "catalog/change.h"
#include "catalog/model.h"
#include "cluster/table_view.h"
#include "storage/error.h"
#include "storage/partition_log.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace kaas::cluster {

/// An epoch of a partition that the assignment gives to this broker.
struct Tenure {
    base::LeaderEpoch epoch;
    std::string volume;
    std::vector<catalog::WalkedEpoch> walk;

    friend bool operator==(const Tenure& a, const Tenure& b) {
        return a.epoch == b.epoch && a.volume == b.volume;
    }
};

/// What an image gave to do; whoever counts it down to zero reports.
struct Batch {
    catalog::ImageVersion version;
    std::size_t open = 0;
};

/// One partition as this broker has it: what is wanted, what there is, and which step leads from
/// one to the other. At most one step runs at a time; what is wanted may change meanwhile. Thread:
/// passive; its table's lock.
class HostedPartition {
public:
    enum class Step { kNone, kOpen, kClose };

    HostedPartition(base::TopicPartition id, std::string directory);

    /// Wants `tenure`, or none. True when that is news. An epoch that was given up once is never
    /// taken again, whoever offers it (DESIGN 9).
    bool aim(std::optional<Tenure> tenure);
    /// Whether its volume is one that this broker lacks: without a tenure it is offline then, not
    /// just elsewhere.
    void strand(bool stranded);
    /// The next step, which the caller runs and ends by `opened` or `closed`. kNone while one runs.
    [[nodiscard]] Step begin();

    void opened(storage::Result<storage::LogPtr> result, base::Clock::Steady now);
    void closed();
    /// The open log has failed by itself.
    void failed(const storage::Error& why, base::Clock::Steady now);

    /// True when its log has failed and the time to try the next epoch has come.
    [[nodiscard]] bool is_due(base::Clock::Steady now) const;
    /// True when it is the volume that failed, and no trial of it since then has shown that it
    /// takes writes: the next epoch would only be spent, too. `well_since`: when the last good one
    /// began.
    [[nodiscard]] bool awaits_trial(std::optional<base::Clock::Steady> well_since) const;
    /// The epoch to give up, which is due.
    [[nodiscard]] catalog::PartitionEpoch surrender(base::Clock::Steady now);
    /// What the controller has not been told about the open log.
    [[nodiscard]] std::optional<catalog::OpenedEpoch> news();

    [[nodiscard]] const base::TopicPartition& id() const { return id_; }
    [[nodiscard]] const std::string& directory() const { return directory_; }
    [[nodiscard]] const std::shared_ptr<Slot>& slot() const { return slot_; }
    [[nodiscard]] Hosting state() const { return state_; }
    [[nodiscard]] bool busy() const { return busy_; }
    /// True when nothing of it touches files: no step runs, no log is open, and the last cycle of
    /// every log that it had has ended. A volume that hangs may keep one for long.
    [[nodiscard]] bool at_rest();
    /// True when no earlier log of it touches files any more.
    [[nodiscard]] bool earlier_at_rest();
    /// False when the running step is for a tenure that is not wanted any more.
    [[nodiscard]] bool still_wanted() const { return wanted_ == held_; }
    [[nodiscard]] const storage::LogPtr& log() const { return log_; }
    /// Of the running step, of the log, or of the attempt that failed.
    [[nodiscard]] const Tenure& tenure() const { return *held_; }
    /// The same, for the step that opens it: nobody else needs the epochs to walk.
    [[nodiscard]] Tenure take_tenure() {
        return {held_->epoch, held_->volume, std::exchange(held_->walk, {})};
    }

    /// True when it has a log on the volume, or is about to: the topic's directory is needed there.
    [[nodiscard]] bool needs(const std::string& volume) const {
        const auto is_there = [&](const auto& place) { return place && place->volume == volume; };
        return is_there(wanted_) || is_there(held_) || is_there(moving);
    }

    /// A move to another volume, from its request to the new epoch.
    struct Moving {
        std::string volume;
        std::uint64_t bytes = 0;  ///< copied so far
        base::Offset end{0};      ///< how far the copy reaches
        bool handed_over = false;
    };
    std::unique_ptr<Moving> moving;
    bool copying = false;  ///< a job is at it
    /// Where moves have left files that nothing names any more.
    std::set<std::string> left_volumes;
    bool discarded = false;                       ///< the topic is deleted: no last line is needed
    std::vector<std::shared_ptr<Batch>> batches;  ///< that wait until no step is left

private:
    void let_go();
    void show(Hosting state);
    [[nodiscard]] Hosting idle_state() const {
        return stranded_ ? Hosting::kOffline : Hosting::kNotHere;
    }
    void plan_retry(storage::ErrorCode code, base::Clock::Steady now);

    const base::TopicPartition id_;
    const std::string directory_;
    const std::shared_ptr<Slot> slot_ = std::make_shared<Slot>();

    std::optional<Tenure> wanted_;
    std::optional<Tenure> held_;  ///< what the log, or the last attempt at one, belongs to
    storage::LogPtr log_;
    std::vector<storage::LogPtr> leaving_;               ///< ended, but a cycle of theirs still ran
    base::LeaderEpoch given_up_ = base::kNoLeaderEpoch;  ///< and every epoch below
    Hosting state_ = Hosting::kNotHere;
    bool busy_ = false;
    bool stranded_ = false;
    std::optional<catalog::OpenedEpoch> told_;
    std::optional<base::Clock::Steady> serves_since_;
    std::optional<base::Clock::Steady> disk_failed_at_;
    std::chrono::milliseconds pause_{0};
    std::optional<base::Clock::Steady> retry_at_;
};
using HostedPartitionPtr = std::shared_ptr<HostedPartition>;

}  // namespace kaas::cluster
