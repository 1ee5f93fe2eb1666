#pragma once

#include "base/clock.h"
#include "base/executor.h"
#include "base/ids.h"
#include "base/metrics.h"
#include "base/mutex.h"
#include "base/uuid.h"
#include "catalog/image.h"
#include "catalog/model.h"
#include "cluster/away.h"
#include "cluster/candidacy.h"
#include "cluster/controller.h"
#include "cluster/controller_address.h"
#include "cluster/election_watch.h"
#include "cluster/error.h"
#include "cluster/link_messages.h"
#include "cluster/node.h"
#include "cluster/node_metrics.h"
#include "cluster/partition_table.h"
#include "cluster/place.h"
#include "cluster/reign.h"
#include "cluster/roll_call.h"
#include "cluster/session.h"
#include "cluster/slot_table.h"
#include "cluster/survey.h"
#include "cluster/turn_thread.h"
#include "cluster/uplink.h"
#include "cluster/volume_proof.h"
#include "cluster/volume_watch.h"
#include "cluster/volume_witness.h"
#include "storage/log_dir.h"
#include "storage/volume.h"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

/// The inside of `Node`, for its own sources: node.cc has the volumes and the life of the process,
/// node_control.cc what goes on between it and the controller.
namespace kaas::cluster {

class Node::Impl {
public:
    explicit Impl(NodeOptions options);
    ~Impl();

    Result<void> start();
    void drain(std::chrono::milliseconds patience);
    void stop(std::chrono::milliseconds patience);

    NodeOptions options_;
    std::unique_ptr<PartitionTable> table_;
    std::unique_ptr<SlotTable> slots_;
    std::shared_ptr<RollCall> roll_call_;
    std::shared_ptr<VolumeWitness> witness_;  ///< null when volumes are not checked
    std::unique_ptr<Controller> controller_;  ///< goes first: it answers the roll call last
    std::string cluster_id_;
    std::vector<MissingVolume> missing_;
    [[nodiscard]] bool storage_stalled() const;
    [[nodiscard]] std::vector<LogDirState> log_dirs() const;
    [[nodiscard]] std::optional<ControllerAddress> controller_elsewhere() const
        KAAS_EXCLUDES(mail_mutex_);
    [[nodiscard]] std::shared_ptr<const Away> away() const KAAS_EXCLUDES(away_mutex_);
    std::atomic<bool> anything_away_ = false;

private:
    /// A volume as this life of the node uses it.
    struct Member {
        NamedVolume volume;
        std::shared_ptr<Session> session;
        std::shared_ptr<storage::LogDir> logs;
        std::shared_ptr<VolumeWatch> watch = nullptr;  ///< null alone: nobody else could take over
    };
    /// What the control thread does with its time.
    enum class Role {
        kSeeking,    ///< looks for a controller, or stands for election
        kFollowing,  ///< reports to the controller of another process
        kReigning,   ///< is the controller
    };
    /// What the uplink said.
    struct Registered {};
    struct Ended {
        LinkEnd how;
        Error why;
    };
    using Mail = std::variant<Registered, ProbeTickets, News, Ended>;

    // Volumes.
    [[nodiscard]] bool alone() const { return options_.sharing == Sharing::kAlone; }
    Result<void> lock_signed();
    Result<void> look();
    Result<void> lock(storage::Volume& volume);
    Result<void> use_volumes(const catalog::Image& image, const std::string& cluster_id);
    void say_what_is_missing() const;
    void end_sessions();
    Result<void> open_sessions(const catalog::Image& image);
    Result<void> open_session(const NamedVolume& volume);
    Result<void> check(const NamedVolume& volume) const;
    Result<void> mark_the_dead(const catalog::Image& image);
    [[nodiscard]] std::shared_ptr<storage::LogDir> make_logs(const Member& member) const;
    [[nodiscard]] std::vector<Member> members() const KAAS_EXCLUDES(members_mutex_);
    void open_logs();
    void open_slots(Place place);
    [[nodiscard]] catalog::Broker as_broker() const;
    void renew_fenced_sessions();
    Result<void> renew_session(const Member& member);
    void look_at_sessions();
    [[nodiscard]] std::shared_ptr<VolumeWatch> make_watch(const Member& member) const;
    void see_what_is_away(const std::vector<Member>& members) KAAS_EXCLUDES(away_mutex_);
    [[nodiscard]] storage::Volume* volume_of(const std::string& name) const;
    void make_controller();
    void make_witness();
    void listen_to_uplink();

    // Reports of the tables, to whoever is the controller. Any thread.
    [[nodiscard]] bool reports_elsewhere() const;
    void applied(catalog::ImageVersion version) KAAS_EXCLUDES(applied_mutex_);
    void measure_serving(catalog::ImageVersion version) KAAS_REQUIRES(applied_mutex_);
    void opened(std::vector<catalog::OpenedEpoch> epochs);
    void released(std::vector<catalog::PartitionEpoch> epochs);
    void moved(std::vector<MovedEpoch> epochs);
    void reclaimed(base::TopicId topic);
    void report(Report report) KAAS_EXCLUDES(report_mutex_);

    // The control thread.
    base::Clock::Steady control();
    void read_mail();
    void read(Registered);
    void read(ProbeTickets asked);
    Result<void> witness_volumes(const ProbeTickets& asked);
    void make_probes();
    void read(News news);
    void read(Ended ended);
    [[nodiscard]] base::Clock::Steady reign();
    void leave_office();
    void yield(std::chrono::milliseconds pause, std::string_view why);
    [[nodiscard]] std::set<base::BrokerId> missed_by(const catalog::Image& image) const;
    [[nodiscard]] base::Clock::Steady seek();
    [[nodiscard]] bool is_own(const ControllerAddress& address) const;
    [[nodiscard]] bool is_worth_following(const ControllerAddress& address) const;
    [[nodiscard]] base::ControllerEpoch table_epoch() const;
    [[nodiscard]] bool is_over(const ElectionWatch::Sight& seen) const;
    [[nodiscard]] std::optional<base::ControllerEpoch> epoch_to_succeed(base::Clock::Steady now);
    void stand(base::Clock::Steady now, std::optional<base::ControllerEpoch> over);
    void not_taken(Error why);
    Result<void> take_office(Reign reign, base::Clock::Steady sought);
    Result<void> register_here();
    [[nodiscard]] ControllerAddress own_address(
        base::ControllerEpoch epoch = base::ControllerEpoch(0)) const;
    void follow(const ControllerAddress& address);
    [[nodiscard]] Registration registration() const;
    [[nodiscard]] std::optional<VolumeProof> proof() const;
    [[nodiscard]] bool others_stay(const catalog::Image& image) const;
    void announce_drain();
    void take(const catalog::ImagePtr& next);
    void tell_living(const catalog::Image& image);
    void check_joined();
    void reigns_since(base::Clock::Steady sought);
    void fail_start(Error why);

    base::Clock::Steady watch();
    void measure();
    void give_back_memory();
    void lost(const Error& why);

    /// How many of the tables have applied a version: the controller hears of it with the last.
    base::Mutex applied_mutex_;
    std::map<catalog::ImageVersion, int> applied_ KAAS_GUARDED_BY(applied_mutex_);
    /// When images came that give what is still to be opened.
    std::map<catalog::ImageVersion, base::Clock::Steady> taken_ KAAS_GUARDED_BY(applied_mutex_);
    /// Came as pictures, so what was pushed before is in them.
    std::set<catalog::ImageVersion> pictures_ KAAS_GUARDED_BY(applied_mutex_);

    /// Held while it is decided who is to hear a report, so that none goes where nobody reads it.
    base::Mutex report_mutex_;

    Survey survey_;
    std::map<storage::Volume*, std::unique_ptr<storage::FileLock>> locks_;
    mutable base::Mutex members_mutex_;
    std::vector<Member> members_ KAAS_GUARDED_BY(members_mutex_);
    /// Whose sessions were ended; logs may still hang in a commit cycle of theirs.
    std::vector<Member> retired_;
    const base::Uuid process_ = base::Uuid::random();

    // Of the control thread.
    Role role_ = Role::kSeeking;
    std::optional<ElectionWatch> election_;
    std::unique_ptr<Candidacy> candidacy_;
    std::string why_without_office_;  ///< told once, not with each attempt
    /// The controller that is followed, or was last.
    ControllerAddress followed_;
    bool registered_ = false;
    /// Until this life is known to the cluster: what others are asked to witness, by volume.
    std::map<std::string, std::unique_ptr<Probe>> probes_;
    /// Its process is gone, or it says that it is over: nobody has to wait for its epoch to stand
    /// still.
    std::optional<base::ControllerEpoch> over_;
    bool gone_ = false;                            ///< the process of `over_` is
    std::optional<base::ControllerEpoch> silent_;  ///< whose controller did not answer
    base::Clock::Steady sought_since_{};
    base::Clock::Steady next_look_{};
    base::Clock::Steady stands_from_{};  ///< others first: something is wrong with this one
    /// Its last reign, if that ended because all others were silent.
    std::optional<base::ControllerEpoch> deserted_;
    /// A new session of this broker is to be registered with its own reign.
    base::Clock::Steady register_at_ = base::Clock::Steady::max();
    base::Clock::Steady next_beat_{};
    base::Clock::Steady next_measure_{};
    /// Another process had this broker's id then: it may be an earlier life, not yet missed.
    std::optional<base::Clock::Steady> duplicate_since_;
    bool joined_ = false;
    std::optional<Error> start_failure_;
    std::atomic<bool> draining_ = false;
    bool drain_told_ = false;
    std::promise<void> drain_announced_;  ///< to a controller that others obey

    /// The control thread had a controller then, and was not held up by a volume.
    std::atomic<base::Clock::Steady> in_touch_{};
    mutable base::Mutex away_mutex_;
    std::shared_ptr<const Away> away_ KAAS_GUARDED_BY(away_mutex_) = std::make_shared<Away>();

    mutable base::Mutex mail_mutex_;
    std::vector<Mail> mail_ KAAS_GUARDED_BY(mail_mutex_);
    std::optional<ControllerAddress> elsewhere_ KAAS_GUARDED_BY(mail_mutex_);

    /// What the node had done at the last look, and when memory was given back.
    struct Activity {
        std::uint64_t cycles = 0;
        std::size_t serving = 0;
        friend bool operator==(const Activity&, const Activity&) = default;
    };
    Activity activity_;
    Activity tidied_;
    /// Without a registry of the process, nobody reads it.
    base::metrics::Registry own_metrics_;
    std::unique_ptr<NodeMetrics> metrics_;
    std::atomic<bool> lost_ = false;
    std::set<std::string> fenced_;  ///< volumes, of the watch thread
    std::unique_ptr<TurnThread> control_;
    std::unique_ptr<TurnThread> watch_;
    bool stopped_ = false;
    /// Null alone. The first to go: what it hears until then still finds its letter box.
    std::shared_ptr<Uplink> uplink_;
};

}  // namespace kaas::cluster
