#include "cluster/slot_table.h"

#include "base/clock.h"
#include "base/ids.h"
#include "base/log.h"
#include "base/mutex.h"
#include "catalog/change.h"
#include "catalog/image.h"
#include "catalog/model.h"
#include "catalog/slot.h"
#include "cluster/jobs.h"
#include "cluster/release_patience.h"
#include "cluster/slot_host.h"
#include "cluster/tenancy.h"
#include "cluster/write_trials.h"
#include "storage/error.h"
#include "storage/log_dir.h"
#include "storage/slot_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kaas::cluster {
namespace {

using SlotLogPtr = std::shared_ptr<storage::SlotLog>;

/// One slot as this broker has it. Guarded by its table's lock.
struct HostedSlot {
    SlotId id;
    base::TopicPartition partition;
    Tenancy tenancy;
    SlotLogPtr log;

    [[nodiscard]] std::string directory() const {
        return catalog::slot_directory(id.kind, id.slot);
    }
};
using HostedSlotPtr = std::shared_ptr<HostedSlot>;

/// What is said once the lock is gone.
struct Outbox {
    std::vector<catalog::ImageVersion> applied;
    std::vector<catalog::OpenedEpoch> opened;
    std::vector<catalog::PartitionEpoch> released;
};

}  // namespace

/// Shared with the jobs that it has on the I/O pool, and with the host's answers.
class SlotTable::Impl : public std::enable_shared_from_this<Impl> {
public:
    explicit Impl(Options options)
        : options_(std::move(options)),
          jobs_(std::make_shared<Jobs>(*options_.io_pool, options_.width)),
          trials_(options_.places, fmt::format("kaas.probe.{}.slots", options_.self),
                  *options_.clock),
          image_(std::make_shared<const catalog::Image>()) {}

    bool apply(const catalog::ImagePtr& next) KAAS_EXCLUDES(mutex_);
    void tick() KAAS_EXCLUDES(mutex_);
    bool close(std::chrono::milliseconds patience) KAAS_EXCLUDES(mutex_);
    [[nodiscard]] std::size_t count(Hosting state) const KAAS_EXCLUDES(mutex_);
    [[nodiscard]] bool is_offline(const SlotId& id) const KAAS_EXCLUDES(mutex_);

private:
    using BatchPtr = std::shared_ptr<Batch>;

    void host(const catalog::Topic& topic, catalog::SlotKind kind, const BatchPtr& batch)
        KAAS_REQUIRES(mutex_);
    void aim(const HostedSlotPtr& slot, std::optional<Tenure> tenure, const BatchPtr& batch)
        KAAS_REQUIRES(mutex_);
    void go_on(const HostedSlotPtr& slot) KAAS_REQUIRES(mutex_);
    void finish(Batch& batch) KAAS_REQUIRES(mutex_);

    void open(const HostedSlotPtr& slot, const Tenure& tenure) KAAS_EXCLUDES(mutex_);
    [[nodiscard]] storage::Result<storage::OpenedSlot> open_log(const HostedSlot& slot,
                                                                const Tenure& tenure) const;
    /// The host serves it; or it does not, or its log did not open.
    void opened(const HostedSlotPtr& slot, storage::Result<void> served) KAAS_EXCLUDES(mutex_);
    /// The host has left a slot whose log has failed.
    void left_failed(const HostedSlotPtr& slot, storage::ErrorCode why) KAAS_EXCLUDES(mutex_);
    /// The host has left it.
    void release_later(const HostedSlotPtr& slot) KAAS_EXCLUDES(mutex_);
    /// Releases all that wait for it.
    void release_some() KAAS_EXCLUDES(mutex_);

    void look_after_all() KAAS_REQUIRES(mutex_);
    void look_after(const HostedSlotPtr& slot, base::Clock::Steady now) KAAS_REQUIRES(mutex_);
    void look_at_log(const HostedSlotPtr& slot) KAAS_REQUIRES(mutex_);
    void try_writes(const std::string& volume) KAAS_EXCLUDES(mutex_);
    [[nodiscard]] bool all_at_rest(base::Clock::Steady deadline) KAAS_EXCLUDES(mutex_);
    [[nodiscard]] std::vector<SlotLogPtr> open_logs() const KAAS_REQUIRES(mutex_);

    /// Sends what is in the outbox, and lets queued jobs run.
    void flush() KAAS_EXCLUDES(mutex_);

    const Options options_;
    const std::shared_ptr<Jobs> jobs_;
    WriteTrials trials_;

    mutable base::Mutex mutex_;
    base::CondVar changed_;
    catalog::ImagePtr image_ KAAS_GUARDED_BY(mutex_);
    std::map<SlotId, HostedSlotPtr> slots_ KAAS_GUARDED_BY(mutex_);
    std::vector<HostedSlotPtr> leaving_ KAAS_GUARDED_BY(mutex_);  ///< wait for their release
    Outbox outbox_ KAAS_GUARDED_BY(mutex_);
    bool closing_ KAAS_GUARDED_BY(mutex_) = false;
    ReleasePatience release_patience_ KAAS_GUARDED_BY(mutex_){*options_.clock,
                                                              options_.release_patience};
};

bool SlotTable::Impl::apply(const catalog::ImagePtr& next) {
    {
        base::MutexLock lock(mutex_);
        if (next->version() <= image_->version()) return false;
        const auto before = std::exchange(image_, next);
        if (closing_) return true;
        auto batch = std::make_shared<Batch>(next->version(), 1);
        for (const auto kind : catalog::kSlotKinds) {
            const auto* topic = next->topic(catalog::slot_topic(kind));
            if (topic != nullptr && topic != before->topic(catalog::slot_topic(kind)))
                host(*topic, kind, batch);
        }
        finish(*batch);
    }
    flush();
    return true;
}

void SlotTable::Impl::host(const catalog::Topic& topic, catalog::SlotKind kind,
                           const BatchPtr& batch) {
    for (std::size_t i = 0; i < topic.partitions.size(); ++i) {
        const auto& partition = topic.partitions[i];
        const base::PartitionId index(static_cast<std::int32_t>(i));
        auto& slot = slots_[{kind, index}];
        if (!slot) {
            slot = std::make_shared<HostedSlot>(HostedSlot{.id = {kind, index},
                                                           .partition = {topic.id, index},
                                                           .tenancy = {},
                                                           .log = nullptr});
        }
        slot->tenancy.strand(is_stranded(partition, options_.self, options_.places));
        aim(slot, tenure_of(partition, options_.self, options_.places), batch);
    }
}

void SlotTable::Impl::aim(const HostedSlotPtr& slot, std::optional<Tenure> tenure,
                          const BatchPtr& batch) {
    if (!slot->tenancy.aim(std::move(tenure))) return;
    ++batch->open;
    slot->tenancy.batches.push_back(batch);
    go_on(slot);
}

void SlotTable::Impl::go_on(const HostedSlotPtr& slot) {
    auto self = shared_from_this();
    switch (slot->tenancy.begin()) {
        case Tenancy::Step::kOpen:
            jobs_->add(
                [self, slot, tenure = slot->tenancy.take_tenure()] { self->open(slot, tenure); });
            return;
        case Tenancy::Step::kClose:
            jobs_->add([self, slot] {
                self->options_.host->close(slot->id, [self, slot] { self->release_later(slot); });
            });
            return;
        case Tenancy::Step::kNone: break;
    }
    if (slot->tenancy.busy()) return;
    for (const auto& batch : std::exchange(slot->tenancy.batches, {})) finish(*batch);
    changed_.notify_all();
}

void SlotTable::Impl::finish(Batch& batch) {
    if (--batch.open == 0) outbox_.applied.push_back(batch.version);
}

// ---- steps of one slot ------------------------------------------------------------------------

void SlotTable::Impl::open(const HostedSlotPtr& slot, const Tenure& tenure) {
    auto found = open_log(*slot, tenure);
    if (!found) return opened(slot, std::unexpected(std::move(found).error()));
    {
        base::MutexLock lock(mutex_);
        slot->log = found->log;  // which may stall before it serves
    }
    options_.host->open(slot->id, std::move(*found),
                        [self = shared_from_this(), slot](storage::Result<void> served) {
                            self->opened(slot, std::move(served));
                        });
}

storage::Result<storage::OpenedSlot> SlotTable::Impl::open_log(const HostedSlot& slot,
                                                               const Tenure& tenure) const {
    storage::SlotLogOptions options;
    options.log_dir = options_.places.find(tenure.volume)->second.logs;
    options.directory = slot.directory();
    options.partition = slot.partition;
    options.epoch = tenure.epoch;
    for (const auto& step : tenure.walk) {
        auto place = options_.places.find(step.volume);
        if (place == options_.places.end()) {
            return storage::fail(storage::ErrorCode::kIo,
                                 fmt::format("epoch {} lies on volume '{}', and the cluster's own "
                                             "files do not",
                                             step.epoch, step.volume));
        }
        options.earlier.push_back({place->second.volume, step.epoch.value(), step.written});
    }
    return storage::SlotLog::open(std::move(options));
}

void SlotTable::Impl::opened(const HostedSlotPtr& slot, storage::Result<void> served) {
    SlotLogPtr unused;
    {
        base::MutexLock lock(mutex_);
        const auto now = options_.clock->now();
        const auto epoch = slot->tenancy.tenure().epoch;
        if (served) {
            slot->tenancy.opened(now);
            if (auto news = slot->tenancy.news(slot->partition, slot->log->written_epoch()))
                outbox_.opened.push_back(*news);
        } else {
            unused = std::exchange(slot->log, nullptr);
            if (slot->tenancy.failed(served.error().code, now)) {
                base::log::warn("cluster", "{}: epoch {} did not open: {}", slot->directory(),
                                epoch, served.error().context);
            }
        }
        go_on(slot);
    }
    if (unused) unused->abandon(storage::ErrorCode::kClosed);
    flush();
}

void SlotTable::Impl::release_later(const HostedSlotPtr& slot) {
    {
        base::MutexLock lock(mutex_);
        leaving_.push_back(slot);
        jobs_->add([self = shared_from_this()] { self->release_some(); });
    }
    flush();
}

void SlotTable::Impl::release_some() {
    std::vector<HostedSlotPtr> slots;
    std::vector<SlotLogPtr> logs;
    std::chrono::milliseconds patience{};
    {
        base::MutexLock lock(mutex_);
        patience = release_patience_.left();
        slots = std::exchange(leaving_, {});
        for (const auto& slot : slots) logs.push_back(slot->log);
    }
    if (slots.empty()) return;  // another job has taken more than one
    const auto released = storage::SlotLog::release_together(logs, patience);
    for (std::size_t i = 0; i < slots.size(); ++i) {
        if (released[i]) continue;
        base::log::warn("cluster", "{}: released without a last line: {}", slots[i]->directory(),
                        released[i].error().context);
    }
    {
        base::MutexLock lock(mutex_);
        for (const auto& slot : slots) {
            slot->log.reset();
            slot->tenancy.closed();
            go_on(slot);
        }
    }
    flush();
}

// ---- upkeep -----------------------------------------------------------------------------------

void SlotTable::Impl::tick() {
    std::vector<SlotLogPtr> stalled;
    {
        base::MutexLock lock(mutex_);
        look_after_all();
        const bool stalls = std::ranges::any_of(
            options_.places, [](const auto& place) { return place.second.logs->stalled(); });
        if (stalls) stalled = open_logs();
    }
    for (const auto& log : stalled) log->fail_stalled();
    flush();
}

void SlotTable::Impl::look_after_all() {
    const auto now = options_.clock->now();
    for (const auto& [id, slot] : slots_) look_after(slot, now);
}

void SlotTable::Impl::look_at_log(const HostedSlotPtr& slot) {
    auto& tenancy = slot->tenancy;
    if (tenancy.busy() || !slot->log) return;
    if (auto news = tenancy.news(slot->partition, slot->log->written_epoch()))
        outbox_.opened.push_back(*news);
    const auto why = slot->log->failure();
    if (!why) return;
    base::log::warn("cluster", "{}: epoch {} has failed: {}", slot->directory(),
                    tenancy.tenure().epoch, why->context);
    tenancy.fails();
    jobs_->add([self = shared_from_this(), slot, code = why->code] {
        self->options_.host->close(slot->id, [self, slot, code] { self->left_failed(slot, code); });
    });
}

void SlotTable::Impl::left_failed(const HostedSlotPtr& slot, storage::ErrorCode why) {
    {
        base::MutexLock lock(mutex_);
        const auto now = options_.clock->now();
        slot->log.reset();
        slot->tenancy.failed(why, now);
        look_after(slot, now);
        go_on(slot);
    }
    flush();
}

void SlotTable::Impl::look_after(const HostedSlotPtr& slot, base::Clock::Steady now) {
    look_at_log(slot);
    auto& tenancy = slot->tenancy;
    if (!tenancy.is_due(now)) return;
    const auto& volume = tenancy.tenure().volume;
    if (!tenancy.awaits_trial(trials_.well_since(volume))) {
        outbox_.released.push_back({slot->partition, tenancy.surrender(now)});
    } else if (!closing_ && trials_.begin(volume)) {
        jobs_->add([self = shared_from_this(), volume] { self->try_writes(volume); });
    }
}

void SlotTable::Impl::try_writes(const std::string& volume) {
    if (!trials_.run(volume)) return;
    {
        base::MutexLock lock(mutex_);
        look_after_all();
    }
    flush();
}

bool SlotTable::Impl::close(std::chrono::milliseconds patience) {
    const auto deadline = options_.clock->now() + patience;
    {
        base::MutexLock lock(mutex_);
        closing_ = true;
        release_patience_.close_within(patience);
        auto nobody = std::make_shared<Batch>(catalog::ImageVersion{}, 1);  // never reported
        for (const auto& [id, slot] : slots_) aim(slot, std::nullopt, nobody);
    }
    flush();
    if (all_at_rest(deadline) && jobs_->all_done(*options_.clock, deadline)) return true;
    std::vector<SlotLogPtr> open;
    {
        base::MutexLock lock(mutex_);
        open = open_logs();
    }
    const auto undone = jobs_->take_back();  // they hold logs, which go after the call
    base::log::warn("cluster", "{} slots were not released in time: the next start recovers them",
                    open.size());
    for (const auto& log : open) log->abandon(storage::ErrorCode::kClosed);
    return false;
}

bool SlotTable::Impl::all_at_rest(base::Clock::Steady deadline) {
    const auto is_busy = [](const auto& entry) { return entry.second->tenancy.busy(); };
    base::MutexLock lock(mutex_);
    while (std::ranges::any_of(slots_, is_busy)) {
        const auto left = deadline - options_.clock->now();
        if (left.count() <= 0) return false;
        changed_.wait_for(mutex_, left);
    }
    return true;
}

std::vector<SlotLogPtr> SlotTable::Impl::open_logs() const {
    std::vector<SlotLogPtr> logs;
    for (const auto& [id, slot] : slots_) {
        if (slot->log) logs.push_back(slot->log);
    }
    return logs;
}

void SlotTable::Impl::flush() {
    Outbox out;
    {
        base::MutexLock lock(mutex_);
        std::swap(out, outbox_);
    }
    const auto& reports = options_.reports;
    if (!out.opened.empty()) reports.opened(std::move(out.opened));
    if (!out.released.empty()) reports.released(std::move(out.released));
    for (const auto& version : out.applied) reports.applied(version);
    jobs_->start();
}

std::size_t SlotTable::Impl::count(Hosting state) const {
    base::MutexLock lock(mutex_);
    return static_cast<std::size_t>(std::ranges::count_if(
        slots_, [&](const auto& entry) { return entry.second->tenancy.state() == state; }));
}

bool SlotTable::Impl::is_offline(const SlotId& id) const {
    base::MutexLock lock(mutex_);
    const auto slot = slots_.find(id);
    return slot != slots_.end() && slot->second->tenancy.state() == Hosting::kOffline;
}

SlotTable::SlotTable(Options options) : impl_(std::make_shared<Impl>(std::move(options))) {}
SlotTable::~SlotTable() = default;

bool SlotTable::apply(const catalog::ImagePtr& next) { return impl_->apply(next); }
std::size_t SlotTable::led() const { return impl_->count(Hosting::kServing); }
std::size_t SlotTable::opening() const { return impl_->count(Hosting::kOpening); }
std::size_t SlotTable::offline() const { return impl_->count(Hosting::kOffline); }
bool SlotTable::is_offline(const SlotId& id) const { return impl_->is_offline(id); }
void SlotTable::tick() { impl_->tick(); }
bool SlotTable::close(std::chrono::milliseconds patience) { return impl_->close(patience); }

}  // namespace kaas::cluster
