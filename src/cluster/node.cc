#include "cluster/node.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/executor.h"
#include "base/heap.h"
#include "base/ids.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/mutex.h"
#include "base/result.h"
#include "base/thread_pool.h"
#include "base/uuid.h"
#include "catalog/change.h"
#include "catalog/image.h"
#include "catalog/model.h"
#include "cluster/balancer.h"
#include "cluster/candidacy.h"
#include "cluster/controller.h"
#include "cluster/error.h"
#include "cluster/identity.h"
#include "cluster/node_impl.h"
#include "cluster/node_metrics.h"
#include "cluster/partition_table.h"
#include "cluster/place.h"
#include "cluster/reign.h"
#include "cluster/session.h"
#include "cluster/slot_table.h"
#include "cluster/survey.h"
#include "cluster/turn_thread.h"
#include "cluster/volume_witness.h"
#include "storage/error.h"
#include "storage/log_dir.h"
#include "storage/volume.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

namespace kaas::cluster {
namespace {

constexpr const char* kLockFile = "kaas.lock";
constexpr std::chrono::seconds kWatchInterval{1};
/// Apache `ProducerStateManager.LATE_TRANSACTION_BUFFER_MS`.
constexpr std::chrono::minutes kLateTransactionBuffer{5};
/// Partitions of a volume that are handed over at a time.
constexpr std::size_t kDrainWidth = 32;
/// For the controller to hear that this broker has left.
constexpr std::chrono::seconds kLeaveTaken{1};
/// Of a node that nobody stopped: its start has failed, or a test is over.
constexpr std::chrono::seconds kPatience{30};

/// `<broker id>.<incarnation>`, as `session_path` names them.
std::optional<catalog::Holder> session_of(std::string_view name) {
    const auto dot = name.find('.');
    if (dot == std::string_view::npos) return std::nullopt;
    std::int32_t id = 0;
    auto [end, wrong] = std::from_chars(name.data(), name.data() + dot, id);
    auto incarnation = base::Uuid::parse(name.substr(dot + 1));
    if (wrong != std::errc() || end != name.data() + dot || !incarnation) return std::nullopt;
    return catalog::Holder{base::BrokerId(id), base::Incarnation{*incarnation}};
}

}  // namespace

Node::Impl::Impl(NodeOptions options) : options_(std::move(options)) {}

Node::Impl::~Impl() { stop(kPatience); }

Result<void> Node::Impl::start() {
    KAAS_ASSERT(!options_.volumes.empty());
    control_ =
        std::make_unique<TurnThread>("kaas-control", *options_.clock, [this] { return control(); });
    watch_ =
        std::make_unique<TurnThread>("kaas-watch", *options_.clock, [this] { return watch(); });
    if (alone()) KAAS_TRY(lock_signed());
    KAAS_TRY(look());
    KAAS_TRY(prepare_cluster(*survey_.cluster));
    options_.controller.slot_volume = survey_.slot_volume;
    election_.emplace(*survey_.cluster);
    make_controller();
    make_witness();
    if (options_.uplink) {
        KAAS_TRY_ASSIGN(uplink, options_.uplink(*survey_.cluster));
        uplink_ = std::move(uplink);
        listen_to_uplink();
    }
    sought_since_ = options_.clock->now();
    control_->run_here([this] { return joined_ || start_failure_; });
    if (start_failure_) return std::unexpected(std::move(*start_failure_));
    control_->start();
    watch_->start();
    return {};
}

/// Every volume: whoever holds a volume's lock may mark the sessions on it. Not what has no sign:
/// it may be the empty place of a missing mount.
Result<void> Node::Impl::lock_signed() {
    for (const auto& named : options_.volumes) {
        auto sign = read_identity(*named.volume);  // what cannot be read is the survey's business
        if (!sign || !*sign) continue;
        // One that cannot be locked for another reason is left out when its session is opened.
        auto locked = lock(*named.volume);
        if (!locked && locked.error().code == ErrorCode::kInUse) return locked;
    }
    return {};
}

Result<void> Node::Impl::look() {
    KAAS_TRY_ASSIGN(seen, survey(options_.volumes, options_.cluster_volume, options_.id,
                                 options_.cluster_id, options_.sharing));
    survey_ = std::move(seen);
    return lock(*survey_.cluster);
}

Result<void> Node::Impl::lock(storage::Volume& volume) {
    if (!alone() || locks_.contains(&volume)) return {};
    auto locked = volume.lock(kLockFile, std::to_string(::getpid()));
    if (locked) {
        locks_.emplace(&volume, std::move(*locked));
        return {};
    }
    if (locked.error().code != storage::ErrorCode::kLocked)
        return failed(std::move(locked).error());
    return fail(ErrorCode::kInUse,
                volume.root() + " is in use by process " + locked.error().context);
}

/// The first time that this life knows its cluster: takes its places on the volumes.
Result<void> Node::Impl::use_volumes(const catalog::Image& image, const std::string& cluster_id) {
    cluster_id_ = cluster_id;
    missing_ = take_out_missing(survey_, image, options_.id, options_.sharing);
    KAAS_TRY(open_sessions(image));
    say_what_is_missing();
    // The locks were free, so whoever held a session here is gone, registered or not.
    if (alone()) KAAS_TRY(mark_the_dead(image));
    open_logs();
    return {};
}

void Node::Impl::say_what_is_missing() const {
    for (const auto& volume : survey_.broken) {
        base::log::error("cluster", "{} is not used: {}", volume.path, volume.why);
    }
    for (const auto& volume : missing_) {
        base::log::error("cluster", "volume '{}' is missing, {} of its partitions are offline: {}",
                         volume.name, volume.partitions, volume.why);
    }
}

/// A volume for partitions that takes no session is left out as one that is missing; not the one
/// with the cluster's own files.
Result<void> Node::Impl::open_sessions(const catalog::Image& image) {
    for (const auto& [volume, sign] : survey_.volumes) {
        auto opened = open_session(volume);
        if (opened) continue;
        const bool is_its_own = opened.error().code == ErrorCode::kStorage ||
                                opened.error().code == ErrorCode::kUnfitVolume;
        if (!is_its_own || volume.volume == survey_.cluster) return opened;
        const auto& root = volume.volume->root();
        missing_.push_back({volume.name, root, partitions_on(image, options_.id, volume.name),
                            root + ": " + opened.error().context});
    }
    const bool also_for_partitions = std::ranges::any_of(
        survey_.volumes,
        [&](const Survey::Found& found) { return found.volume.volume == survey_.cluster; });
    if (also_for_partitions) return {};
    return open_session(
        {.name = survey_.slot_volume, .volume = survey_.cluster, .takes_partitions = false});
}

Result<void> Node::Impl::open_session(const NamedVolume& volume) {
    KAAS_TRY(lock(*volume.volume));
    KAAS_TRY(prepare_volume(*volume.volume));
    if (options_.check_volumes) KAAS_TRY(check(volume));
    // The sign comes before the first partition, so that a place without one never had any.
    KAAS_TRY(write_identity(*volume.volume,
                            {.cluster_id = cluster_id_,
                             .volume = volume.name,
                             .cluster_volume = survey_.cluster_volume,
                             .broker = alone() ? std::optional(options_.id) : std::nullopt,
                             .shared = !alone()}));
    KAAS_TRY_ASSIGN(session, Session::open(*volume.volume, options_.id));
    base::MutexLock lock(members_mutex_);
    members_.push_back({volume, std::move(session), nullptr});
    return {};
}

Result<void> Node::Impl::mark_the_dead(const catalog::Image& image) {
    for (const auto& [volume, session, logs, watch] : members()) {
        for (const auto& [id, broker] : image.brokers()) {
            auto old = broker->sessions.find(volume.name);
            if (old == broker->sessions.end()) continue;
            KAAS_TRY(mark_session(*volume.volume, id, old->second));
        }
        // Those of starts that died before they were registered; nobody was ever told of them.
        auto names = volume.volume->list(std::string(kSessionsDirectory));
        if (!names) return failed(std::move(names).error());
        for (const auto& name : *names) {
            auto left = session_of(name);
            if (!left || left->incarnation == session->incarnation()) continue;
            KAAS_TRY(mark_session(*volume.volume, left->broker, left->incarnation));
        }
    }
    return {};
}

std::shared_ptr<storage::LogDir> Node::Impl::make_logs(const Member& member) const {
    auto options = options_.logs;
    options.name = member.volume.name;
    options.volume = member.volume.volume;
    options.session = member.session.get();
    options.io_pool = options_.io_pool;
    options.clock = options_.clock;
    if (options_.metrics != nullptr) options.metrics = options_.metrics;
    options.owner = {options_.id, member.session->incarnation()};
    auto logs = std::make_shared<storage::LogDir>(std::move(options));
    logs->start();
    return logs;
}

void Node::Impl::open_logs() {
    PartitionTable::Options table{.self = options_.id,
                                  .places = {},
                                  .io_pool = options_.io_pool,
                                  .clock = options_.clock,
                                  .log_config = options_.log_config,
                                  .on_image = options_.on_image,
                                  .reports = {},
                                  .upkeep = options_.upkeep};
    {
        base::MutexLock lock(members_mutex_);
        for (auto& member : members_) {
            member.logs = make_logs(member);
            member.watch = make_watch(member);
            table.places[member.volume.name] = {member.volume.volume, member.logs.get(),
                                                member.session->incarnation()};
        }
    }
    table.on_recovered = [this](std::chrono::microseconds took) {
        metrics_->recover.observe_us(took.count());
    };
    table.reports.applied = [this](catalog::ImageVersion version) { applied(version); };
    table.reports.opened = [this](auto epochs) { opened(std::move(epochs)); };
    table.reports.released = [this](auto epochs) { released(std::move(epochs)); };
    table.reports.moved = [this](auto epochs) { moved(std::move(epochs)); };
    table.reports.reclaimed = [this](base::TopicId topic) { reclaimed(topic); };
    const auto place_of_slots = table.places.at(survey_.slot_volume);
    table_ = std::make_unique<PartitionTable>(std::move(table));
    if (options_.slot_host != nullptr) open_slots(place_of_slots);
    auto& registry = options_.metrics == nullptr ? own_metrics_ : *options_.metrics;
    metrics_ = std::make_unique<NodeMetrics>(
        registry, *table_, slots_.get(),
        NodeMetrics::LateTransactions{
            .clock = options_.clock,
            .after = options_.transaction_max_timeout + kLateTransactionBuffer});
}

void Node::Impl::open_slots(Place place) {
    SlotTable::Options slots{.self = options_.id,
                             .places = {{survey_.slot_volume, place}},
                             .host = options_.slot_host,
                             .io_pool = options_.io_pool,
                             .clock = options_.clock,
                             .reports = {}};
    slots.reports.applied = [this](catalog::ImageVersion version) { applied(version); };
    slots.reports.opened = [this](auto epochs) { opened(std::move(epochs)); };
    slots.reports.released = [this](auto epochs) { released(std::move(epochs)); };
    slots_ = std::make_unique<SlotTable>(std::move(slots));
}

/// What this broker is, for the catalog.
catalog::Broker Node::Impl::as_broker() const {
    catalog::Broker self{.id = options_.id,
                         .sessions = {},
                         .endpoints = options_.endpoints,
                         .rack = options_.rack,
                         .draining = draining_,
                         .unknown = nullptr};
    for (const auto& member : members()) {
        const auto& volume = member.volume;
        self.sessions.emplace(volume.name, member.session->incarnation());
        self.volumes.emplace(volume.name,
                             catalog::BrokerVolume{.path = volume.volume->root(),
                                                   .labels = volume.labels,
                                                   .default_eligible = volume.default_eligible,
                                                   .cordoned = volume.cordoned,
                                                   .takes_partitions = volume.takes_partitions});
    }
    // Kept, so that they are known when they come back; without partitions they are forgotten.
    for (const auto& volume : missing_) {
        self.volumes.emplace(volume.name, catalog::BrokerVolume{.path = volume.path});
    }
    return self;
}

storage::Volume* Node::Impl::volume_of(const std::string& name) const {
    for (const auto& member : members()) {
        if (member.volume.name == name) return member.volume.volume;
    }
    return nullptr;
}

std::vector<Node::Impl::Member> Node::Impl::members() const {
    base::MutexLock lock(members_mutex_);
    return members_;
}

void Node::Impl::measure_serving(catalog::ImageVersion version) {
    const auto taken = taken_.find(version);
    if (taken == taken_.end()) return;
    const auto took = std::chrono::duration_cast<std::chrono::microseconds>(options_.clock->now() -
                                                                            taken->second);
    taken_.erase(taken_.begin(), std::next(taken));
    metrics_->serve.observe_us(took.count());
}

void Node::Impl::reigns_since(base::Clock::Steady sought) {
    metrics_->is_controller.set(1);
    metrics_->reigns.add();
    const auto took =
        std::chrono::duration_cast<std::chrono::microseconds>(options_.clock->now() - sought);
    metrics_->reign_start.observe_us(took.count());
    metrics_->elect.observe_us(took.count());
}

void Node::Impl::measure() {
    for (const auto& member : members()) {
        if (auto space = member.volume.volume->space()) {
            metrics_->set_space(member.volume.name, *space);
        }
        if (member.logs) member.logs->room().look();  // also while nobody writes
    }
    give_back_memory();
}

/// What thousands of openings and first batches needed for a moment lies between what stays: twice
/// as much as the partitions themselves. Not while there is work, which would want it again.
void Node::Impl::give_back_memory() {
    Activity now{.serving = table_->serving()};
    for (const auto& member : members()) {
        if (member.logs) now.cycles += member.logs->cycles();
    }
    const bool opened = now.serving != tidied_.serving && table_->opening() == 0;
    const bool quiet = now == activity_ && now != tidied_;
    activity_ = now;
    if (!opened && !quiet) return;
    tidied_ = now;
    base::trim_heap();
}

bool Node::Impl::storage_stalled() const {
    return std::ranges::any_of(
        members(), [](const Member& member) { return member.logs && member.logs->stalled(); });
}

base::Clock::Steady Node::Impl::watch() {
    table_->tick();
    if (slots_) slots_->tick();
    const auto all = members();
    const bool opening = table_->opening() > 0 || (slots_ && slots_->opening() > 0);
    for (const auto& member : all) {
        if (!opening) member.logs->journal_readers().forget_others();
        if (!member.session->fenced()) continue;
        if (!alone()) {
            control_->wake();  // which comes back under a new incarnation
            continue;
        }
        if (member.volume.volume != survey_.cluster && all.size() > 1) {
            // Its logs have failed with the check; the rest goes on.
            if (fenced_.insert(member.volume.name).second) {
                base::log::error("cluster",
                                 "the session on volume '{}' was ended, its partitions are offline",
                                 member.volume.name);
            }
            continue;
        }
        lost({ErrorCode::kFenced, "the session on volume '" + member.volume.name + "' was ended"});
    }
    if (!alone()) see_what_is_away(all);
    return options_.clock->now() + kWatchInterval;
}

void Node::Impl::lost(const Error& why) {
    if (lost_.exchange(true)) return;
    metrics_->is_controller.set(0);
    if (why.code == ErrorCode::kFenced) metrics_->fences.add();
    base::log::error("cluster", "broker {} cannot go on: {}", options_.id, why.context);
    options_.on_lost(why);
}

void Node::Impl::drain(std::chrono::milliseconds patience) {
    if (!others_stay(*table_->image())) {
        if (slots_) slots_->close(patience);
        return;
    }
    base::log::info("cluster", "broker {} gives back all that it leads", options_.id);
    const auto deadline = options_.clock->now() + patience;
    draining_ = true;
    control_->wake();
    // Who is to give away what is released must be there, and know that it must not come back.
    drain_announced_.get_future().wait_for(patience / 4);
    if (slots_) slots_->drain(kDrainWidth, patience / 2);
    const auto left =
        std::chrono::floor<std::chrono::milliseconds>(deadline - options_.clock->now());
    table_->drain(kDrainWidth, std::max(left, std::chrono::milliseconds(0)));
}

/// Its own end, so that nothing is left for others to mark.
void Node::Impl::end_sessions() {
    for (const auto& member : members()) {
        auto ended =
            mark_session(*member.volume.volume, options_.id, member.session->incarnation());
        if (!ended) base::log::warn("cluster", "a session stays: {}", ended.error().context);
    }
}

void Node::Impl::stop(std::chrono::milliseconds patience) {
    if (std::exchange(stopped_, true)) return;
    watch_->stop();
    const auto deadline = options_.clock->now() + patience;
    // First, for they may still have to say something to partitions.
    if (slots_) slots_->close(patience / 2);
    const auto left =
        std::chrono::floor<std::chrono::milliseconds>(deadline - options_.clock->now());
    if (table_) table_->close(std::max(left, std::chrono::milliseconds(0)));
    control_->stop();
    for (const auto& member : members()) {
        if (member.logs) member.logs->stop();
    }
    // What is not marked must not be given away; alone, nobody takes it.
    if (!alone()) end_sessions();
    if (role_ == Role::kReigning) {
        base::InlineExecutor here;
        controller_->remove_broker(options_.id, {&here, [](Result<std::monostate>) {}});
        controller_->resign();
    }
    if (roll_call_) roll_call_->close();
    if (alone()) end_sessions();
    if (role_ == Role::kFollowing) {
        uplink_->report({.intent = Report::Intent::kLeave});
        (void)uplink_->flush(kLeaveTaken);  // else its silence says it
    }
    if (uplink_) uplink_->forget();
    for (const auto& member : retired_) member.logs->stop();
}

Result<std::unique_ptr<Node>> Node::start(NodeOptions options) {
    auto impl = std::make_unique<Impl>(std::move(options));
    KAAS_TRY(impl->start());
    return std::unique_ptr<Node>(new Node(std::move(impl)));
}

Node::Node(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Node::~Node() = default;

base::BrokerId Node::id() const { return impl_->options_.id; }
const std::string& Node::cluster_id() const { return impl_->cluster_id_; }
PartitionTable& Node::partitions() { return *impl_->table_; }
const SlotTable* Node::slots() const { return impl_->slots_.get(); }
Controller& Node::controller() { return *impl_->controller_; }
RollCall& Node::roll_call() { return *impl_->roll_call_; }
std::shared_ptr<VolumeWitness> Node::volume_witness() { return impl_->witness_; }
std::optional<ControllerAddress> Node::controller_elsewhere() const {
    return impl_->controller_elsewhere();
}
std::shared_ptr<const Away> Node::away() const { return impl_->away(); }
bool Node::anything_away() const { return impl_->anything_away_; }
std::vector<Node::LogDirState> Node::Impl::log_dirs() const {
    const auto image = table_->image();
    const auto* self = image->broker(options_.id);
    std::vector<LogDirState> dirs;
    for (const auto& member : members()) {
        const auto& volume = member.volume;
        if (!volume.takes_partitions) continue;
        dirs.push_back({.name = volume.name,
                        .path = volume.volume->root(),
                        .volume = volume.volume,
                        .cordoned = self != nullptr && is_cordoned(*image, *self, volume.name),
                        .full = member.logs && member.logs->room().is_full()});
    }
    for (const auto& volume : missing_) dirs.push_back({.name = volume.name, .path = volume.path});
    return dirs;
}

std::vector<Node::LogDirState> Node::log_dirs() const { return impl_->log_dirs(); }
const std::vector<MissingVolume>& Node::missing_volumes() const { return impl_->missing_; }
bool Node::storage_stalled() const { return impl_->storage_stalled(); }
void Node::stop(std::chrono::milliseconds patience) { impl_->stop(patience); }
void Node::drain(std::chrono::milliseconds patience) { impl_->drain(patience); }

}  // namespace kaas::cluster
