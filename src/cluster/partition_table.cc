#include "cluster/partition_table.h"

#include "base/clock.h"
#include "base/ids.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/result.h"
#include "catalog/change.h"
#include "catalog/image.h"
#include "catalog/model.h"
#include "catalog/slot.h"
#include "catalog/topic_name.h"
#include "cluster/hosted_partition.h"
#include "cluster/jobs.h"
#include "cluster/partition_table_impl.h"
#include "cluster/table_view.h"
#include "cluster/tenancy.h"
#include "cluster/topic_reclaimer.h"
#include "cluster/versioned.h"
#include "storage/error.h"
#include "storage/log_config.h"
#include "storage/log_dir.h"
#include "storage/partition_log.h"
#include "storage/volume.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace kaas::cluster {

std::shared_ptr<const TableView> PartitionTable::Impl::first_view() {
    auto view = std::make_shared<TableView>();
    view->image = std::make_shared<const catalog::Image>();
    return view;
}

bool PartitionTable::Impl::apply(const catalog::ImagePtr& next) {
    auto view = std::make_shared<TableView>(*views_.get());
    if (next->version() <= view->image->version()) return false;
    options_.on_image(next);
    const auto changed = next->changed_topics(*view->image);
    view->image = next;
    {
        base::MutexLock lock(mutex_);
        if (closing_) {  // nothing is opened; but what came once is not news again
            views_.set(std::move(view));
            return true;
        }
        auto batch = std::make_shared<Batch>(next->version(), 1);
        for (const auto& [before, now] : changed) {
            if (catalog::slot_kind((now ? now : before)->name)) continue;  // `SlotTable` has them
            if (now) {
                host(*now, !before || before->configs != now->configs, *view, batch);
            } else {
                drop(*before, *view, batch);
            }
        }
        for (const auto& [id, deletion] : next->deletions()) {
            removals_[id].deletion = deletion;
            remove_when_closed(id);
        }
        // Shown before the logs are: they are found by it as they come.
        views_.set(std::move(view));
        finish(*batch);
        note_change();
    }
    flush();
    return true;
}

void PartitionTable::Impl::host(const catalog::Topic& topic, bool new_configs, TableView& view,
                                const std::shared_ptr<Batch>& batch) {
    auto& local = topics_[topic.id];
    if (new_configs) {
        local.config =
            std::make_shared<const storage::LogConfig>(options_.log_config(topic.configs));
        for (const auto& partition : local.partitions) {
            if (partition && partition->log()) partition->log()->set_config(local.config);
        }
    }
    if (extend(topic, local)) show(topic, local, view);
    for (std::size_t i = 0; i < local.partitions.size(); ++i) {
        if (!local.partitions[i]) continue;
        const auto& partition = topic.partitions[i];
        local.partitions[i]->strand(is_stranded(partition, options_.self, *places_));
        auto tenure = tenure_of(partition, options_.self, *places_);
        // What comes during a drain, and what was given back in it, is not for this broker.
        if (tenure && draining_ && !local.partitions[i]->tenancy().wants(tenure->epoch))
            tenure->asked_back = true;
        aim(local.partitions[i], std::move(tenure), batch);
    }
}

bool PartitionTable::Impl::extend(const catalog::Topic& topic, LocalTopic& local) const {
    bool more = false;
    local.partitions.resize(topic.partitions.size());
    if (local.directory == nullptr) {
        local.directory =
            std::make_shared<const std::string>(catalog::topic_directory(topic.name, topic.id));
    }
    for (std::size_t i = 0; i < topic.partitions.size(); ++i) {
        const auto& partition = topic.partitions[i];
        if (local.partitions[i]) continue;
        if (!tenure_of(partition, options_.self, *places_) &&
            !is_stranded(partition, options_.self, *places_)) {
            continue;
        }
        local.partitions[i] = std::make_shared<HostedPartition>(
            base::TopicPartition{topic.id, base::PartitionId(static_cast<std::int32_t>(i))},
            local.directory);
        more = true;
    }
    return more;
}

void PartitionTable::Impl::show(const catalog::Topic& topic, const LocalTopic& local,
                                TableView& view) {
    auto shown = std::make_shared<HostedTopic>();
    shown->name = topic.name;
    shown->id = topic.id;
    shown->seats.reserve(local.partitions.size());
    for (const auto& partition : local.partitions) {
        shown->seats.push_back(partition ? partition->seat() : nullptr);
    }
    view.by_id.put(topic.id, shown);
    view.by_name.put(shown->name, shown);
}

void PartitionTable::Impl::drop(const catalog::Topic& topic, TableView& view,
                                const std::shared_ptr<Batch>& batch) {
    auto local = std::move(topics_[topic.id]);
    topics_.erase(topic.id);
    view.by_id.erase(topic.id);
    // The name may be another topic's already: images may be far apart.
    const auto* named = view.by_name.find(topic.name);
    if (named != nullptr && (*named)->id == topic.id) view.by_name.erase(topic.name);
    auto& closing = removals_[topic.id].closing;
    for (auto& partition : local.partitions) {
        if (!partition) continue;
        partition->discarded = true;
        closing.push_back(partition);
        aim(partition, std::nullopt, batch);
    }
}

void PartitionTable::Impl::aim(const HostedPartitionPtr& partition, std::optional<Tenure> tenure,
                               const std::shared_ptr<Batch>& batch) {
    if (!partition->aim(std::move(tenure))) return;
    ++batch->open;
    partition->tenancy().batches.push_back(batch);
    go_on(partition);
}

// ---- steps of one partition -------------------------------------------------------------------

void PartitionTable::Impl::go_on(const HostedPartitionPtr& partition) {
    switch (partition->begin()) {
        case Tenancy::Step::kOpen:
            openings_.push({.partition = partition,
                            .life = partition->life(),
                            .tenure = partition->tenancy().take_tenure()});
            jobs_->add([self = shared_from_this()] { self->open_some(); });
            return;
        case Tenancy::Step::kClose:
            partition->log()->expect_release();  // its turn may come late
            closings_.push({.partition = partition,
                            .life = partition->life(),
                            .log = partition->log(),
                            .discarded = partition->discarded});
            jobs_->add([self = shared_from_this()] { self->close_some(); });
            return;
        case Tenancy::Step::kNone: break;
    }
    if (partition->tenancy().busy()) return;
    report_release(*partition);
    for (const auto& batch : std::exchange(partition->tenancy().batches, {})) finish(*batch);
    if (partition->discarded) remove_when_closed(partition->id().topic);
}

/// What a move has handed over is for the next epoch on the other volume.
void PartitionTable::Impl::report_release(HostedPartition& partition) {
    const auto epoch = partition.tenancy().release_to_report(options_.clock->now());
    if (!epoch) return;
    if (partition.moving && partition.moving->handed_over) {
        outbox_.moved.push_back({partition.id(), *epoch, partition.moving->volume});
    } else {
        outbox_.released.push_back({partition.id(), *epoch});
    }
}

void PartitionTable::Impl::close_some() {
    std::vector<Closing> closings;
    {
        base::MutexLock lock(mutex_);
        closings = take_share(closings_);
    }
    if (closings.empty()) return;  // another job has taken more than one
    for (const auto& closing : closings) {
        if (closing.discarded) closing.log->drop();
    }
    release(closings);
    {
        base::MutexLock lock(mutex_);
        for (const auto& [partition, life, log, discarded] : closings) {
            if (life != partition->life()) continue;
            partition->closed();
            go_on(partition);
        }
        note_change();
    }
    flush();
}

void PartitionTable::Impl::release(std::span<const Closing> closings) const {
    std::vector<storage::LogPtr> logs;
    for (const auto& closing : closings) {
        if (!closing.discarded) logs.push_back(closing.log);
    }
    std::chrono::milliseconds patience{};
    {
        base::MutexLock lock(mutex_);
        patience = release_patience_.left();
    }
    const auto released = storage::PartitionLog::release_together(logs, patience);
    for (std::size_t i = 0; i < logs.size(); ++i) {
        if (released[i]) continue;
        base::log::warn("cluster", "{}: released without a last line: {}", logs[i]->directory(),
                        released[i].error().context);
    }
}

void PartitionTable::Impl::finish(Batch& batch) {
    if (--batch.open == 0) outbox_.applied.push_back(batch.version);
}

// ---- deleted topics ---------------------------------------------------------------------------

void PartitionTable::Impl::remove_when_closed(const base::TopicId& topic) {
    auto found = removals_.find(topic);
    if (closing_ || found == removals_.end()) return;
    auto& removal = found->second;
    // Without the record of the deletion nothing is removed: absence deletes nothing (rule 4).
    if (removal.busy || removal.deletion.name.empty()) return;
    // A cycle that still runs holds files open by name: not under its feet. The next tick looks
    // again.
    const auto at_rest = [](const HostedPartitionPtr& partition) { return partition->at_rest(); };
    if (!std::ranges::all_of(removal.closing, at_rest)) return;
    removal.busy = true;
    jobs_->add(
        [self = shared_from_this(), deletion = removal.deletion] { self->remove(deletion); });
}

void PartitionTable::Impl::remove(const catalog::Deletion& deletion) {
    const auto removed = remove_files(deletion);
    bool news = false;
    {
        base::MutexLock lock(mutex_);
        if (removed) {
            removals_.erase(deletion.id);
            outbox_.reclaimed.push_back(deletion.id);
        } else {
            auto& removal = removals_[deletion.id];
            removal.busy = false;  // the next tick tries again
            news = std::exchange(removal.said, removed.error().context) != removal.said;
        }
    }
    if (news) {
        base::log::warn("cluster", "topic '{}' ({}) is deleted, but its files stay for now: {}",
                        deletion.name, deletion.id.uuid.to_string(), removed.error().context);
    }
    flush();
}

storage::Result<void> PartitionTable::Impl::remove_files(const catalog::Deletion& deletion) const {
    const auto all = places();
    for (const auto& volume : deletion.volumes) {
        if (!all->contains(volume)) {
            return storage::fail(storage::ErrorCode::kIo,
                                 "volume '" + volume + "' is not one of this broker's");
        }
    }
    // Not only those: a move that a restart has ended left a copy that nothing names.
    for (const auto& [name, place] : *all) {
        auto& session = place.logs->session();
        KAAS_TRY(set_aside(*place.volume, session, deletion.name, deletion.id));
        KAAS_TRY(reclaim(*place.volume, session, deletion.name, deletion.id));
    }
    return {};
}

// ---- upkeep -----------------------------------------------------------------------------------

void PartitionTable::Impl::tick() {
    std::vector<storage::LogPtr> stalled;
    {
        base::MutexLock lock(mutex_);
        look_after_all();
        std::vector<base::TopicId> removals;
        for (const auto& [id, removal] : removals_) removals.push_back(id);
        for (const auto& id : removals) remove_when_closed(id);
        stalled = stalled_logs();
    }
    for (const auto& log : stalled) log->fail_stalled();
    keep_house();
    flush();
}

namespace {

/// True when it is time; then sets the next one.
[[nodiscard]] bool is_due(base::Clock::Steady& next, base::Clock::Steady now,
                          std::chrono::milliseconds interval) {
    if (now < next) return false;
    next = now + interval;
    return true;
}

}  // namespace

void PartitionTable::Impl::keep_house() {
    std::vector<storage::LogPtr> logs;
    bool retention = false;
    bool producers = false;
    {
        base::MutexLock lock(mutex_);
        const auto now = options_.clock->now();
        logs = open_logs();
        retention = is_due(next_retention_check_, now, options_.upkeep.segments);
        producers = is_due(next_producer_check_, now, options_.upkeep.producers);
        std::vector<storage::LogPtr> due;
        std::ranges::copy_if(logs, std::back_inserter(due),
                             [&](const storage::LogPtr& log) { return log->reclaim_due() <= now; });
        // One job at a time: removing files must not take the pool from those who read and write.
        if (!due.empty() && !closing_ && !std::exchange(reclaiming_, true)) {
            jobs_->add(
                [self = shared_from_this(), due = std::move(due)] { self->remove_dropped(due); });
        }
        if (retention && !closing_ && !std::exchange(sweeping_, true)) {
            jobs_->add([self = shared_from_this(), image = views_.get()->image] {
                self->sweep_journals(image);
            });
        }
    }
    for (const auto& log : logs) {
        if (retention) log->retain();
        if (producers) log->expire_producers();
    }
}

/// Of topics that are deleted, and of logs that were taken over elsewhere: no recovery here comes
/// for them.
void PartitionTable::Impl::sweep_journals(const catalog::ImagePtr& image) {
    const auto is_needed = [&](const storage::JournalKey& key) {
        const auto* partition = image->partition(key.partition);
        return partition != nullptr && partition->written_epoch <= key.epoch;
    };
    // An image in which this broker is not registered is no picture of the cluster yet.
    const bool joined = image->broker(options_.self) != nullptr;
    const auto all = places();
    std::erase_if(sweepers_, [&](const auto& sweeper) {
        return std::ranges::none_of(
            *all, [&](const auto& place) { return place.second.incarnation == sweeper.first; });
    });
    for (const auto& [name, place] : *all) {
        if (!joined) break;
        auto& sweeper =
            sweepers_.try_emplace(place.incarnation, *place.volume, place.logs->options().owner)
                .first->second;
        if (auto swept = sweeper.sweep(is_needed, place.logs->session()); !swept) {
            base::log::warn("cluster", "journals on volume '{}' stay for now: {}", name,
                            swept.error().context);
        }
    }
    base::MutexLock lock(mutex_);
    sweeping_ = false;
}

void PartitionTable::Impl::remove_dropped(const std::vector<storage::LogPtr>& logs) {
    for (const auto& log : logs) log->reclaim();
    base::MutexLock lock(mutex_);
    reclaiming_ = false;
}

void PartitionTable::Impl::look_after_all() {
    const auto now = options_.clock->now();
    for (const auto& [id, local] : topics_) {
        for (const auto& partition : local.partitions) {
            if (!partition) continue;
            look_after(*partition, now);
            // What a move could not remove from the old volume at once.
            if (!partition->left_volumes.empty() && partition->log() &&
                partition->earlier_at_rest())
                start_carrying(partition);
        }
    }
}

void PartitionTable::Impl::look_after(HostedPartition& partition, base::Clock::Steady now) {
    const auto& tenancy = partition.tenancy();
    if (tenancy.state() == Hosting::kServing) {
        if (auto why = partition.log()->failure()) partition.failed(*why, now);
    }
    if (auto news = partition.news()) outbox_.opened.push_back(*news);
    if (tenancy.is_due(now)) {
        const auto& volume = tenancy.tenure().volume;
        const auto place = places_->find(volume);
        if (!tenancy.awaits_trial(trials_.well_since(volume))) {
            partition.surrender();
        } else if (!closing_ && place != places_->end() && trials_.begin(volume)) {
            jobs_->add([self = shared_from_this(), volume, on = place->second.volume] {
                self->try_writes(volume, *on);
            });
        }
    }
    report_release(partition);
}

void PartitionTable::Impl::try_writes(const std::string& name, storage::Volume& volume) {
    if (!trials_.run(name, volume)) return;
    {
        base::MutexLock lock(mutex_);
        look_after_all();
    }
    flush();
}

std::vector<storage::LogPtr> PartitionTable::Impl::list_open_logs() const {
    base::MutexLock lock(mutex_);
    return open_logs();
}

std::vector<storage::LogPtr> PartitionTable::Impl::open_logs() const {
    std::vector<storage::LogPtr> logs;
    for (const auto& [id, local] : topics_) {
        for (const auto& partition : local.partitions) {
            if (partition && partition->log()) logs.push_back(partition->log());
        }
    }
    return logs;
}

std::vector<storage::LogPtr> PartitionTable::Impl::stalled_logs() const {
    std::vector<storage::LogPtr> logs;
    for (const auto& [name, place] : *places_) {
        if (!place.logs->stalled()) continue;
        for (const auto& [id, local] : topics_) {
            for (const auto& partition : local.partitions) {
                if (!partition || !partition->log() || partition->tenancy().tenure().volume != name)
                    continue;
                logs.push_back(partition->log());
            }
        }
    }
    return logs;
}

std::shared_ptr<const Places> PartitionTable::Impl::places() const {
    base::MutexLock lock(mutex_);
    return places_;
}

void PartitionTable::Impl::flush() {
    Outbox out;
    {
        base::MutexLock lock(mutex_);
        std::swap(out, outbox_);
    }
    const auto& reports = options_.reports;
    if (!out.opened.empty()) reports.opened(std::move(out.opened));
    if (!out.released.empty()) reports.released(std::move(out.released));
    if (!out.moved.empty()) reports.moved(std::move(out.moved));
    for (const auto& topic : out.reclaimed) reports.reclaimed(topic);
    for (const auto& version : out.applied) reports.applied(version);
    jobs_->start();
}

std::size_t PartitionTable::Impl::count(Hosting state) const {
    base::MutexLock lock(mutex_);
    std::size_t count = 0;
    for (const auto& [id, local] : topics_) {
        count += static_cast<std::size_t>(
            std::ranges::count_if(local.partitions, [&](const HostedPartitionPtr& partition) {
                return partition && partition->tenancy().state() == state;
            }));
    }
    return count;
}

PartitionTable::PartitionTable(Options options)
    : impl_(std::make_shared<Impl>(std::move(options))) {}
PartitionTable::~PartitionTable() = default;

bool PartitionTable::apply(const catalog::ImagePtr& next) { return impl_->apply(next); }
catalog::ImagePtr PartitionTable::image() const { return impl_->views().get()->image; }
PartitionReader PartitionTable::reader() const { return PartitionReader(impl_->views()); }
std::size_t PartitionTable::opening() const { return impl_->count(Hosting::kOpening); }
std::size_t PartitionTable::damaged() const {
    return static_cast<std::size_t>(
        std::ranges::count_if(open_logs(), [](const auto& log) { return log->damaged(); }));
}
std::size_t PartitionTable::offline() const { return impl_->count(Hosting::kOffline); }
std::size_t PartitionTable::serving() const { return impl_->count(Hosting::kServing); }
PartitionTable::Move PartitionTable::move(const base::TopicPartition& id,
                                          const std::string& volume) {
    return impl_->move(id, volume);
}
std::vector<PartitionTable::Stored> PartitionTable::stored() const { return impl_->stored(); }
std::vector<storage::LogPtr> PartitionTable::open_logs() const { return impl_->list_open_logs(); }
void PartitionTable::tick() { impl_->tick(); }
void PartitionTable::replace_place(const std::string& volume, Place place) {
    impl_->set_place(volume, place);
}
void PartitionTable::remove_place(const std::string& volume) {
    impl_->set_place(volume, std::nullopt);
}
bool PartitionTable::drain(std::size_t width, std::chrono::milliseconds patience) {
    return impl_->drain(width, patience);
}
bool PartitionTable::close(std::chrono::milliseconds patience) { return impl_->close(patience); }

}  // namespace kaas::cluster
