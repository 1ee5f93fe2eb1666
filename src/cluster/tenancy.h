#pragma once

#include "base/clock.h"
#include "base/ids.h"
#include "catalog/change.h"
#include "catalog/model.h"
#include "cluster/place.h"
#include "storage/error.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kaas::cluster {

/// Whether this broker serves a partition.
enum class Hosting : std::uint8_t {
    kServing,  ///< its log is open
    kOpening,  ///< assigned here, on its way: retriable (NOT_LEADER_OR_FOLLOWER)
    kOffline,  ///< assigned here, but its log failed (KAFKA_STORAGE_ERROR)
    kNotHere,  ///< led by another broker, or by none (NOT_LEADER_OR_FOLLOWER)
    kUnknown,  ///< no such topic or partition
};

/// An epoch of a partition that the assignment gives to this broker.
struct Tenure {
    base::LeaderEpoch epoch;
    std::string volume;
    std::vector<catalog::WalkedEpoch> walk;
    bool asked_back = false;  ///< not to serve, but to release

    friend bool operator==(const Tenure& a, const Tenure& b) {
        return a.epoch == b.epoch && a.volume == b.volume;
    }
};

/// What the assignment gives to the life of broker `self` that uses `places`.
[[nodiscard]] std::optional<Tenure> tenure_of(const catalog::Partition& partition,
                                              base::BrokerId self, const Places& places);
/// Led by broker `self`, on a volume that it does not have.
[[nodiscard]] bool is_stranded(const catalog::Partition& partition, base::BrokerId self,
                               const Places& places);

/// What an image gave to do; whoever counts it down to zero reports.
struct Batch {
    catalog::ImageVersion version;
    std::size_t open = 0;
};

/// How a partition or a coordinators' slot comes to this broker and goes: which epoch is wanted,
/// which is held, and which step leads from one to the other. At most one step runs at a time; what
/// is wanted may change meanwhile. An epoch whose log fails is given up for the next one, after
/// pauses that grow. What was given up and is still assigned here is to be reported, again and
/// again: a report may be lost with its controller. Thread: passive; its table's lock.
class Tenancy {
public:
    enum class Step { kNone, kOpen, kClose };

    /// The newest image assigns `tenure`, or none. True when that is news. An epoch that was given
    /// up once is never taken again, whoever offers it (DESIGN 9).
    bool aim(std::optional<Tenure> tenure);
    /// Gives up what is assigned here, as if it had been asked back.
    void give_back();
    /// The volume is another life's now: whatever step runs is none of this tenancy's any more.
    void start_over();
    /// Whether its volume is one that this broker lacks: without a tenure it is offline then, not
    /// just elsewhere.
    void strand(bool stranded);
    /// The next step, which the caller runs and ends by `opened`, `failed` or `closed`. kNone while
    /// one runs.
    [[nodiscard]] Step begin();

    /// The log is open; whoever wanted it may want another one by now (`still_wanted`).
    void opened(base::Clock::Steady now);
    /// The open log has failed by itself, and those who use it are still to let go of it: a step,
    /// which ends by `failed`.
    void fails();
    /// The log has failed, while it was opened or by itself later, and is let go. False when nobody
    /// wants it any more.
    bool failed(storage::ErrorCode why, base::Clock::Steady now);
    /// The log is let go, its epoch given up.
    void closed();

    /// True when its log has failed and the time to try the next epoch has come.
    [[nodiscard]] bool is_due(base::Clock::Steady now) const;
    /// True when it is the volume that failed, and no trial of it since then has shown that it
    /// takes writes: the next epoch would only be spent, too. `well_since`: when the last good one
    /// began.
    [[nodiscard]] bool awaits_trial(std::optional<base::Clock::Steady> well_since) const;
    /// Gives up the epoch, which is due.
    void surrender();
    /// An epoch that has been given up, which the assignment does not know; due at once for one
    /// that was served, and about once a second from then on.
    [[nodiscard]] std::optional<base::LeaderEpoch> release_to_report(base::Clock::Steady now);
    /// True when the assignment names an epoch that was given up.
    [[nodiscard]] bool owes_report() const { return assigned_ && assigned_->epoch <= given_up_; }
    /// What the controller has not been told about the open log, which serves from `written`.
    [[nodiscard]] std::optional<catalog::OpenedEpoch> news(
        const base::TopicPartition& id, std::optional<base::LeaderEpoch> written);

    [[nodiscard]] Hosting state() const { return state_; }
    [[nodiscard]] bool busy() const { return busy_; }
    /// True when the assignment gives this very epoch, and nobody has asked for it back.
    [[nodiscard]] bool wants(base::LeaderEpoch epoch) const {
        return wanted_ && assigned_->epoch == epoch;
    }
    /// Held, or on its way here or from here.
    [[nodiscard]] bool is_led() const { return busy_ || open_ || wanted_; }
    /// On its way from here, until the assignment shows that it has gone.
    [[nodiscard]] bool is_handed_back() const {
        return recalled_ && (busy_ || open_ || owes_report());
    }
    /// Of what is assigned here, or else held; empty when there is neither.
    [[nodiscard]] const std::string& volume() const;
    /// False when the running step is for a tenure that is not wanted any more.
    [[nodiscard]] bool still_wanted() const { return wanted_ ? held_ == assigned_ : !held_; }
    /// Of the running step, of the log, or of the attempt that failed.
    [[nodiscard]] const Tenure& tenure() const { return *held_; }
    /// The same, for the step that opens it: nobody else needs the epochs to walk.
    [[nodiscard]] Tenure take_tenure() {
        return {held_->epoch, held_->volume, std::exchange(held_->walk, {})};
    }
    /// True when its log, or the step that runs, is on the volume.
    [[nodiscard]] bool holds_on(const std::string& volume) const {
        return held_ && held_->volume == volume;
    }
    /// True when it is on the volume, or about to be.
    [[nodiscard]] bool needs(const std::string& volume) const {
        return holds_on(volume) || (wanted_ && assigned_->volume == volume);
    }

    std::vector<std::shared_ptr<Batch>> batches;  ///< that wait until no step is left

private:
    [[nodiscard]] Hosting idle_state() const {
        return stranded_ ? Hosting::kOffline : Hosting::kNotHere;
    }
    /// Of what is assigned here: the step that opens it has it, or has had it.
    void forget_walk();
    void plan_retry(storage::ErrorCode code, base::Clock::Steady now);
    /// What was asked back and is not served, or not any more, is given up.
    void give_up_recalled();

    // In an order that leaves no gaps: there are thousands.
    std::optional<Tenure> assigned_;   ///< by the newest image, to this life
    std::optional<Tenure> held_;       ///< what the log, or the last attempt at one, belongs to
    base::Clock::Steady report_at_{};  ///< the next release, at the earliest
    /// The epoch that was reported as open, and the one it served from.
    std::optional<std::pair<base::LeaderEpoch, base::LeaderEpoch>> told_;
    std::optional<base::Clock::Steady> serves_since_;
    std::optional<base::Clock::Steady> disk_failed_at_;
    std::chrono::milliseconds pause_{0};
    std::optional<base::Clock::Steady> retry_at_;
    base::LeaderEpoch given_up_ = base::kNoLeaderEpoch;  ///< and every epoch below
    Hosting state_ = Hosting::kNotHere;
    bool wanted_ = false;    ///< the assigned epoch is to be served
    bool recalled_ = false;  ///< the assigned epoch is to be released
    bool open_ = false;
    bool busy_ = false;
    bool stranded_ = false;
};

}  // namespace kaas::cluster
