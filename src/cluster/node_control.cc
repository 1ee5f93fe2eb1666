#include "base/clock.h"
#include "base/executor.h"
#include "base/ids.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/result.h"
#include "catalog/broker_identity.h"
#include "catalog/change.h"
#include "catalog/control_log.h"
#include "catalog/image.h"
#include "catalog/model.h"
#include "cluster/candidacy.h"
#include "cluster/controller.h"
#include "cluster/controller_address.h"
#include "cluster/election_watch.h"
#include "cluster/error.h"
#include "cluster/link_messages.h"
#include "cluster/node_impl.h"
#include "cluster/reign.h"
#include "cluster/roll_call.h"
#include "cluster/session.h"
#include "cluster/uplink.h"
#include "cluster/volume_proof.h"

#include <algorithm>
#include <chrono>
#include <expected>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace kaas::cluster {
namespace {

using std::chrono::milliseconds;

constexpr std::chrono::seconds kMeasureInterval{10};
/// Between two looks for a controller: who wins an election tells its address within milliseconds.
constexpr milliseconds kFirstLook{20};
constexpr milliseconds kLaterLook{500};
/// Of looks that come quickly; a cluster without a controller is not worth more.
constexpr std::chrono::seconds kQuickLooks{5};
/// A controller that may be cut off gives the others so long to stand.
constexpr std::chrono::seconds kOthersFirst{2};

}  // namespace

void Node::Impl::make_controller() {
    controller_ = std::make_unique<Controller>(
        ControllerOptions{.clock = options_.clock,
                          .config = options_.controller,
                          .push =
                              [this](const Push& push) {
                                  metrics_->count_moves(*roll_call_->image(), push.changes);
                                  take(push.image);
                                  roll_call_->pushed(push);
                              },
                          .wake = [this] { control_->wake(); }});
    roll_call_ = std::make_shared<RollCall>(RollCall::Options{
        .self = {options_.id, process_},
        .clock = options_.clock,
        .session_timeout = options_.session_timeout,
        .death_grace = options_.death_grace,
        .controller = controller_.get(),
        .mark =
            [this](base::BrokerId id, const std::string& volume,
                   const base::Incarnation& incarnation, RollCall::Marked marked) {
                options_.io_pool->post([volume = volume_of(volume), name = volume, id, incarnation,
                                        marked = std::move(marked)]() mutable {
                    marked(volume == nullptr
                               ? fail(ErrorCode::kStorage, "volume '" + name + "' is not here")
                               : mark_session(*volume, id, incarnation));
                });
            },
        .probe = options_.probe,
        .wake = [this] { control_->wake(); },
        .on_death =
            [this](milliseconds silent) {
                metrics_->detect.observe_us(std::chrono::microseconds(silent).count());
            },
        .on_stale = [this] { metrics_->stale_reports.add(); }});
}

void Node::Impl::listen_to_uplink() {
    const auto put = [this](Mail mail) {
        {
            base::MutexLock lock(mail_mutex_);
            mail_.push_back(std::move(mail));
        }
        control_->wake();
    };
    uplink_->listen({.on_registered = [put] { put(Registered{}); },
                     .on_asked_to_witness = [put](ProbeTickets asked) { put(std::move(asked)); },
                     .on_news = [put](News news) { put(std::move(news)); },
                     .on_end = [put](LinkEnd how, Error why) { put(Ended{how, std::move(why)}); }});
}

// What the tables report.

void Node::Impl::applied(catalog::ImageVersion version) {
    bool and_before = false;
    {
        base::MutexLock lock(applied_mutex_);
        if (++applied_[version] < (slots_ ? 2 : 1)) return;
        applied_.erase(version);
        measure_serving(version);
        and_before = pictures_.erase(version) > 0;
    }
    if (!reports_elsewhere()) return controller_->applied(options_.id, version, and_before);
    uplink_->report({.applied = {{version, and_before}}});
}

bool Node::Impl::reports_elsewhere() const { return uplink_ && !controller_->reigning(); }

void Node::Impl::opened(std::vector<catalog::OpenedEpoch> epochs) {
    report({.opened = std::move(epochs)});
}
void Node::Impl::released(std::vector<catalog::PartitionEpoch> epochs) {
    report({.released = std::move(epochs)});
}
void Node::Impl::moved(std::vector<MovedEpoch> epochs) { report({.moved = std::move(epochs)}); }
void Node::Impl::reclaimed(base::TopicId topic) { report({.reclaimed = {topic}}); }

void Node::Impl::report(Report report) {
    base::MutexLock lock(report_mutex_);
    if (reports_elsewhere()) {
        uplink_->report(std::move(report));
    } else {
        controller_->hear(std::move(report));
    }
}

// The control thread.

base::Clock::Steady Node::Impl::control() {
    read_mail();
    if (!alone()) renew_fenced_sessions();
    if (lost_) return base::Clock::Steady::max();
    if (draining_ && !drain_told_) announce_drain();
    base::Clock::Steady next = base::Clock::Steady::max();
    if (role_ == Role::kReigning) next = reign();
    if (role_ != Role::kReigning) {
        controller_->step();  // somebody may have asked it
        next = std::min(next, seek());
    }
    const auto now = options_.clock->now();
    if (role_ == Role::kReigning || (role_ == Role::kFollowing && registered_)) in_touch_ = now;
    if (now >= next_measure_ && joined_) {
        next_measure_ = now + kMeasureInterval;
        measure();
    }
    return joined_ ? std::min(next, next_measure_) : next;
}

void Node::Impl::read_mail() {
    std::vector<Mail> mail;
    {
        base::MutexLock lock(mail_mutex_);
        std::swap(mail, mail_);
    }
    for (auto& letter : mail) {
        std::visit([this](auto& what) { read(std::move(what)); }, letter);
    }
}

void Node::Impl::read(Registered) {
    if (role_ != Role::kFollowing) return;
    registered_ = true;
    probes_.clear();
    duplicate_since_.reset();
    over_.reset();
    silent_.reset();
    base::log::info("cluster", "broker {} is registered with controller {}, epoch {}", options_.id,
                    followed_.broker, followed_.epoch);
    uplink_->watch(table_->image()->version());
}

void Node::Impl::read(News news) {
    if (role_ != Role::kFollowing) return;
    auto image = table_->image();
    std::optional<Error> fault;
    if (const auto* picture = std::get_if<std::shared_ptr<const std::string>>(&news)) {
        auto parsed = parse_picture_text(**picture);
        if (parsed && (*parsed)->version() <= image->version()) {
            // A controller that has been succeeded; there is another one to be found.
            return read(Ended{LinkEnd::kSilent, {ErrorCode::kNotController, "an old picture"}});
        }
        if (parsed) {
            {
                base::MutexLock lock(applied_mutex_);
                pictures_.insert((*parsed)->version());
            }
            take(*parsed);
        } else {
            fault = parsed.error();
        }
    } else {
        for (const auto& push : std::get<std::vector<PushedLinesPtr>>(news)) {
            if (push->version <= image->version()) continue;
            auto next = apply_lines(*image, *push);
            if (!next) {
                fault = next.error();
                break;
            }
            image = *next;
            take(image);
        }
    }
    if (fault) {
        base::log::warn("cluster", "what the controller sent is asked for once more, whole: {}",
                        fault->context);
        return uplink_->watch({});
    }
    check_joined();
    uplink_->watch(table_->image()->version());
}

void Node::Impl::read(Ended ended) {
    if (role_ != Role::kFollowing) return;
    role_ = Role::kSeeking;
    uplink_->forget();
    {
        base::MutexLock lock(mail_mutex_);
        elsewhere_.reset();
    }
    if (std::exchange(registered_, false)) {
        sought_since_ = options_.clock->now();
        base::log::info("cluster", "controller {} is lost: {}", followed_.broker,
                        ended.why.context);
    }
    next_look_ = options_.clock->now();
    switch (ended.how) {
        case LinkEnd::kGone:
        case LinkEnd::kNotController:
            over_ = followed_.epoch;
            gone_ = ended.how == LinkEnd::kGone;
            break;
        case LinkEnd::kStale: look_at_sessions(); break;
        case LinkEnd::kSilent: silent_ = followed_.epoch; break;
        case LinkEnd::kRefused: {
            const auto now = options_.clock->now();
            if (!duplicate_since_) duplicate_since_ = now;
            // A killed life of this broker is missed after the session timeout at the latest.
            const bool may_end = ended.why.code == ErrorCode::kDuplicateBroker &&
                                 now - *duplicate_since_ < options_.session_timeout * 3 / 2;
            next_look_ = now + kLaterLook;
            if (!may_end) fail_start(std::move(ended.why));
        }
    }
}

void Node::Impl::fail_start(Error why) {
    if (!joined_) {
        start_failure_ = std::move(why);
    } else {
        lost(why);
    }
}

base::Clock::Steady Node::Impl::reign() {
    auto next = controller_->step();
    const auto now = options_.clock->now();
    if (now >= next_beat_) {
        next_beat_ = now + options_.beat_interval;
        controller_->beat();
    }
    if (now >= register_at_) {
        // Its earlier session may not be marked yet: until then nobody may give it anything.
        auto done = register_here();
        register_at_ = done ? base::Clock::Steady::max() : now + kLaterLook;
        if (!done) base::log::warn("cluster", "{}", done.error().context);
    }
    next = std::min({next, next_beat_, register_at_, roll_call_->turn()});
    if (roll_call_->hears_nobody()) {
        deserted_ = roll_call_->image()->version().epoch;
        yield(kOthersFirst, "all other brokers are silent: one that is not cut off shall reign");
    } else if (const auto volumes = roll_call_->out_of_reach(); !volumes.empty()) {
        yield(2 * options_.session_timeout, "sessions on volume '" + volumes.front() +
                                                "' can be ended by others only: one shall reign");
    }
    if (!controller_->reigning()) leave_office();
    return next;
}

/// Lets others stand first.
void Node::Impl::yield(milliseconds pause, std::string_view why) {
    base::log::warn("cluster", "broker {} yields: {}", options_.id, why);
    stands_from_ = options_.clock->now() + pause;
    controller_->resign();
}

void Node::Impl::leave_office() {
    role_ = Role::kSeeking;
    registered_ = false;
    roll_call_->end();
    metrics_->is_controller.set(0);
    const auto& why = controller_->ended_by();
    if (why && why->code == ErrorCode::kFenced) metrics_->stale_reigns.add();
    if (alone() && why && why->code == ErrorCode::kFenced) lost(*why);
    sought_since_ = options_.clock->now();
    next_look_ = sought_since_;
    if (alone()) return;
    over_ = table_epoch();  // nobody has to wait for its counter
    gone_ = false;
    base::MutexLock lock(report_mutex_);
    if (uplink_) uplink_->report(controller_->hand_over());
}

/// True when a living broker is there that stays.
bool Node::Impl::others_stay(const catalog::Image& image) const {
    return std::ranges::any_of(image.brokers(), [&](const auto& entry) {
        const auto& [id, broker] = entry;
        return id != options_.id && broker->living() && !broker->draining;
    });
}

/// A controller that drains yields first: others stand as soon as it says that it is none. The
/// drain goes on once there is one that gives away what it releases.
void Node::Impl::announce_drain() {
    if (role_ == Role::kReigning) {
        base::InlineExecutor here;
        controller_->drain_broker(options_.id, {&here, [](const Result<std::monostate>&) {}});
        controller_->resign();
        leave_office();
        base::log::info("cluster", "broker {} is not the controller any more", options_.id);
    }
    if (!registered_) return;
    uplink_->report({.intent = Report::Intent::kDrain});
    drain_told_ = true;
    drain_announced_.set_value();
}

base::Clock::Steady Node::Impl::seek() {
    const auto now = options_.clock->now();
    if (now < next_look_) return next_look_;
    if (role_ == Role::kFollowing && registered_) {
        // So that when the controller falls silent, it is known whether it still counts.
        const auto seen = election_->look(now);
        next_look_ = now + options_.beat_interval;
        if (!seen || seen->newest != followed_.epoch || !is_over(*seen)) return next_look_;
        // It may answer from memory for as long as its process lives.
        read(Ended{LinkEnd::kSilent, {ErrorCode::kNotController, "its epoch stands still"}});
    }
    if (alone()) {
        if (candidacy_ && now < candidacy_->due()) return candidacy_->due();
        stand(now, std::nullopt);
        return role_ == Role::kReigning ? now : candidacy_ ? candidacy_->due() : now;
    }
    next_look_ = now + (now - sought_since_ < kQuickLooks ? kFirstLook : kLaterLook);
    const auto address = newest_address(*survey_.cluster);
    if (address && *address && is_own(**address)) over_ = (*address)->epoch;
    const bool is_known = address && *address && is_worth_following(**address);
    const bool is_news = is_known && (*address)->epoch > followed_.epoch;
    // One that was silent is asked again, unless it does not count any more either.
    const bool is_doubtful = !is_known || silent_ == (*address)->epoch;
    const bool has_waited = now - sought_since_ >= options_.session_timeout;
    if (!is_news && (is_doubtful || has_waited)) {
        if (const auto over = epoch_to_succeed(now)) stand(now, over);
    }
    if (is_known && (role_ == Role::kSeeking || (role_ == Role::kFollowing && is_news))) {
        follow(**address);
    }
    return role_ == Role::kReigning ? now : next_look_;
}

/// An earlier reign, perhaps of an earlier process: it listened where this one does, so it is over.
bool Node::Impl::is_own(const ControllerAddress& address) const {
    const auto own = own_address(address.epoch);
    return address.broker == own.broker && address.host == own.host && address.port == own.port;
}

bool Node::Impl::is_worth_following(const ControllerAddress& address) const {
    return (!over_ || address.epoch > *over_) && address.epoch >= table_epoch();
}

base::ControllerEpoch Node::Impl::table_epoch() const {
    return table_ ? table_->image()->version().epoch : base::ControllerEpoch(0);
}

/// Nobody reigns, as far as this broker can see: a mistake costs an election, and nothing else.
std::optional<base::ControllerEpoch> Node::Impl::epoch_to_succeed(base::Clock::Steady now) {
    if (draining_) return std::nullopt;
    if (now < stands_from_ || (candidacy_ && now < candidacy_->due())) return std::nullopt;
    const auto seen = election_->look(now);
    if (!seen) return std::nullopt;
    const bool nobody_reigns =
        seen->newest == base::ControllerEpoch(0) || over_ == seen->newest || is_over(*seen);
    return nobody_reigns ? std::optional(seen->newest) : std::nullopt;
}

bool Node::Impl::is_over(const ElectionWatch::Sight& seen) const {
    return seen.over || seen.still >= options_.session_timeout;
}

void Node::Impl::stand(base::Clock::Steady now, std::optional<base::ControllerEpoch> over) {
    const bool is_signed = std::ranges::any_of(
        survey_.volumes, [](const Survey::Found& found) { return found.sign.has_value(); });
    auto won = candidacy_ ? candidacy_->stand(now, over)
                          : begin_reign(*survey_.cluster, options_.id, survey_.cluster_id,
                                        is_signed ? Founding::kRefused : Founding::kAllowed, over);
    if (won) {
        auto taken = take_office(std::move(*won), joined_ ? now : sought_since_);
        if (!taken) not_taken(std::move(taken).error());
        return;
    }
    const auto& why = won.error();
    if (alone() && (!joined_ || why.code == ErrorCode::kFenced)) return fail_start(why);
    const bool others = why.code == ErrorCode::kSuperseded || why.code == ErrorCode::kFenced;
    if (!joined_ && !others) return fail_start(why);
    over_.reset();  // somebody stood: what is newest is another epoch now
    if (others) return;
    const bool news = why.context != why_without_office_;
    why_without_office_ = why.context;
    if (news) base::log::warn("cluster", "no new reign for now: {}", why_without_office_);
}

/// An office that is lost again in its first step is as one that was not won: among others,
/// somebody else may have it.
void Node::Impl::not_taken(Error why) {
    const bool is_lost = role_ == Role::kReigning && !controller_->reigning();
    if (alone() || (!joined_ && !is_lost)) return fail_start(std::move(why));
    base::log::warn("cluster", "broker {} does not stay in office: {}", options_.id, why.context);
    controller_->resign();
    leave_office();
}

/// Partitions go on under the epochs that they have: it is the same broker, with the same sessions.
Result<void> Node::Impl::take_office(Reign reign, base::Clock::Steady sought) {
    const auto image = reign.image;
    if (cluster_id_.empty()) KAAS_TRY(use_volumes(*image, image->cluster_id()));
    if (!candidacy_)
        candidacy_ = std::make_unique<Candidacy>(*survey_.cluster, options_.id, cluster_id_);
    why_without_office_.clear();
    role_ = Role::kReigning;
    if (joined_) {
        base::log::info("cluster", "broker {} reigns{}, controller epoch {}", options_.id,
                        alone() ? " again" : "", image->version().epoch);
    }
    take(image);
    roll_call_->begin(image, missed_by(*image));
    over_.reset();
    silent_.reset();
    deserted_.reset();
    {
        base::MutexLock lock(report_mutex_);
        controller_->begin(std::move(reign));
        if (uplink_) controller_->hear(uplink_->take_back());
    }
    next_beat_ = options_.clock->now();
    KAAS_TRY(register_here());
    if (!alone()) tell_address(*survey_.cluster, own_address(image->version().epoch));
    reigns_since(sought);
    return {};
}

/// Of whom nothing was heard before this reign, for so long that they need not be waited for again.
std::set<base::BrokerId> Node::Impl::missed_by(const catalog::Image& image) const {
    std::set<base::BrokerId> missed;
    const bool is_gone = (gone_ && over_ == followed_.epoch) || silent_ == followed_.epoch;
    if (is_gone) missed.insert(followed_.broker);
    // Nobody has stood since then: all of them are gone indeed.
    if (deserted_ && *deserted_ + 1 == image.version().epoch) {
        for (const auto& [id, broker] : image.brokers()) missed.insert(id);
    }
    missed.erase(options_.id);
    return missed;
}

/// A life that has not changed needs no line.
Result<void> Node::Impl::register_here() {
    const auto self = as_broker();
    const auto& image = *roll_call_->image();
    const auto* known = image.broker(options_.id);
    if (known != nullptr && catalog::same_registration(*known, self)) {
        check_joined();  // it registered with the last controller, and heard no more of it
        return {};
    }
    if (known != nullptr && !alone()) {
        for (const auto& [volume, incarnation] : known->sessions) {
            auto* where = volume_of(volume);
            const auto now = self.sessions.find(volume);
            if (where == nullptr || (now != self.sessions.end() && now->second == incarnation))
                continue;
            KAAS_TRY(mark_session(*where, options_.id, incarnation));
        }
    }
    base::InlineExecutor here;
    Result<std::monostate> done = fail(ErrorCode::kNotController, "the registration was lost");
    controller_->register_broker(self,
                                 {&here, [&](Result<std::monostate> result) { done = result; }});
    controller_->step();
    if (!done) return std::unexpected(std::move(done).error());
    check_joined();
    return {};
}

ControllerAddress Node::Impl::own_address(base::ControllerEpoch epoch) const {
    ControllerAddress address;
    address.epoch = epoch;
    address.broker = options_.id;
    address.cluster_id = cluster_id_;
    for (const auto& endpoint : options_.endpoints) {
        if (endpoint.listener != catalog::kInternalListener) continue;
        address.host = endpoint.host;
        address.port = endpoint.port;
    }
    return address;
}

void Node::Impl::follow(const ControllerAddress& address) {
    if (cluster_id_.empty()) {
        if (options_.cluster_id && *options_.cluster_id != address.cluster_id) {
            return fail_start({ErrorCode::kWrongCluster, "this is the volume of cluster '" +
                                                             address.cluster_id + "', not of '" +
                                                             *options_.cluster_id + "'"});
        }
        // Which volumes are in use: a mount that is missing must not be taken for a new one.
        auto image = catalog::glimpse_control(*survey_.cluster, address.epoch);
        if (!image || *image == nullptr) return;  // it has only begun
        auto used = use_volumes(**image, address.cluster_id);
        if (!used) return fail_start(std::move(used).error());
        candidacy_ = std::make_unique<Candidacy>(*survey_.cluster, options_.id, cluster_id_);
    }
    if (role_ != Role::kFollowing || address.epoch != followed_.epoch) {
        base::log::debug("cluster", "controller {} of epoch {} is at {}:{}", address.broker,
                         address.epoch, address.host, address.port);
    }
    role_ = Role::kFollowing;
    registered_ = false;
    followed_ = address;
    {
        base::MutexLock lock(mail_mutex_);
        elsewhere_ = address;
        mail_.clear();  // of the last one
    }
    make_probes();
    uplink_->follow(address, registration());
}

std::optional<ControllerAddress> Node::Impl::controller_elsewhere() const {
    base::MutexLock lock(mail_mutex_);
    return elsewhere_;
}

void Node::Impl::take(const catalog::ImagePtr& next) {
    if (!alone()) tell_living(*next);
    const auto begin = options_.clock->now();
    (table_->apply(next) ? metrics_->pushes : metrics_->stale_pushes).add();
    if (table_->opening() > 0) {
        base::MutexLock lock(applied_mutex_);
        taken_.emplace(next->version(), begin);
    }
    if (slots_) slots_->apply(next);
}

/// Who is not in the image is marked, so that journals of it are read once, however many of its
/// partitions come here.
void Node::Impl::tell_living(const catalog::Image& image) {
    for (const auto& member : members()) {
        std::set<base::Incarnation> living;
        for (const auto& [id, broker] : image.brokers()) {
            const auto session = broker->sessions.find(member.volume.name);
            if (session != broker->sessions.end()) living.insert(session->second);
        }
        member.logs->journal_readers().set_living(std::move(living));
    }
}

/// Its sessions stand in the image: from now on it is a broker of the cluster.
void Node::Impl::check_joined() {
    if (joined_) return;
    const auto image = table_->image();
    const auto* known = image->broker(options_.id);
    joined_ = known != nullptr && known->sessions == as_broker().sessions;
}

}  // namespace kaas::cluster
