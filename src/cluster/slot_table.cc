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
#include "cluster/place.h"
#include "cluster/slot_host.h"
#include "cluster/slot_table_impl.h"
#include "cluster/tenancy.h"
#include "storage/error.h"
#include "storage/log_dir.h"
#include "storage/slot_log.h"
#include "storage/volume.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace kaas::cluster {

bool SlotTable::Impl::apply(const catalog::ImagePtr& next) {
    {
        base::MutexLock lock(mutex_);
        if (next->version() <= image_->version()) return false;
        const auto before = std::exchange(image_, next);
        if (closing_) return true;
        auto batch = std::make_shared<Batch>(next->version(), 1);
        host_all(before.get(), batch);
        finish(*batch);
        note_change();
    }
    flush();
    return true;
}

/// Those that are not the same as in `before`.
void SlotTable::Impl::host_all(const catalog::Image* before, const BatchPtr& batch) {
    for (const auto kind : catalog::kSlotKinds) {
        const auto name = catalog::slot_topic(kind);
        const auto* topic = image_->topic(name);
        if (topic == nullptr || (before != nullptr && topic == before->topic(name))) continue;
        host(*topic, kind, batch);
    }
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
        slot->tenancy.strand(is_stranded(partition, options_.self, *places_));
        auto tenure = tenure_of(partition, options_.self, *places_);
        // What comes during a drain, and what was given back in it, is not for this broker.
        if (tenure && draining_ && !slot->tenancy.wants(tenure->epoch)) tenure->asked_back = true;
        aim(slot, std::move(tenure), batch);
    }
}

void SlotTable::Impl::aim(const HostedSlotPtr& slot, std::optional<Tenure> tenure,
                          const BatchPtr& batch) {
    // Of a lost one the image is looked at when the host has left it.
    if (!slot->lost && !slot->tenancy.aim(std::move(tenure))) return;
    ++batch->open;
    slot->tenancy.batches.push_back(batch);
    go_on(slot);
}

void SlotTable::Impl::go_on(const HostedSlotPtr& slot) {
    auto self = shared_from_this();
    switch (slot->tenancy.begin()) {
        case Tenancy::Step::kOpen:
            jobs_->add([self, slot, life = slot->life, tenure = slot->tenancy.take_tenure()] {
                self->open(slot, life, tenure);
            });
            return;
        case Tenancy::Step::kClose:
            leave(slot, [self, slot] { self->release_later(slot); });
            return;
        case Tenancy::Step::kNone: break;
    }
    if (slot->tenancy.busy()) return;
    report_release(*slot);
    for (const auto& batch : std::exchange(slot->tenancy.batches, {})) finish(*batch);
    note_change();
}

void SlotTable::Impl::note_change() {
    ++changes_;
    changed_.notify_all();
}

void SlotTable::Impl::report_release(HostedSlot& slot) {
    if (const auto epoch = slot.tenancy.release_to_report(options_.clock->now()))
        outbox_.released.push_back({slot.partition, *epoch});
}

void SlotTable::Impl::finish(Batch& batch) {
    if (--batch.open == 0) outbox_.applied.push_back(batch.version);
}

// ---- steps of one slot ------------------------------------------------------------------------

void SlotTable::Impl::open(const HostedSlotPtr& slot, int life, const Tenure& tenure) {
    std::shared_ptr<const Places> places;
    {
        base::MutexLock lock(mutex_);
        places = places_;
    }
    auto found = open_log(*slot, tenure, *places);
    if (!found) return opened(slot, life, std::unexpected(std::move(found).error()));
    if (!hand_to_host(*slot, life, found->log))
        return found->log->abandon(storage::ErrorCode::kFenced);
    options_.host->open(slot->id, std::move(*found),
                        [self = shared_from_this(), slot, life](storage::Result<void> served) {
                            self->opened(slot, life, std::move(served));
                        });
}

bool SlotTable::Impl::hand_to_host(HostedSlot& slot, int life, const SlotLogPtr& log) {
    base::MutexLock lock(mutex_);
    if (life != slot.life) return false;
    slot.log = log;  // which may stall before it serves
    slot.with_host = true;
    return true;
}

void SlotTable::Impl::leave(const HostedSlotPtr& slot, std::move_only_function<void()> left) {
    jobs_->add([self = shared_from_this(), slot, left = std::move(left)]() mutable {
        self->options_.host->close(slot->id, std::move(left));
    });
}

storage::Result<storage::OpenedSlot> SlotTable::Impl::open_log(const HostedSlot& slot,
                                                               const Tenure& tenure,
                                                               const Places& places) {
    const auto own = places.find(tenure.volume);
    if (own == places.end())
        return storage::fail(storage::ErrorCode::kClosed, "its volume is gone");
    storage::SlotLogOptions options;
    options.log_dir = own->second.logs;
    options.directory = slot.directory();
    options.partition = slot.partition;
    options.epoch = tenure.epoch;
    for (const auto& step : tenure.walk) {
        auto place = places.find(step.volume);
        if (place == places.end()) {
            return storage::fail(storage::ErrorCode::kIo,
                                 fmt::format("epoch {} lies on volume '{}', and the cluster's own "
                                             "files do not",
                                             step.epoch, step.volume));
        }
        options.earlier.push_back({place->second.volume, step.epoch.value(), step.written});
    }
    return storage::SlotLog::open(std::move(options));
}

void SlotTable::Impl::opened(const HostedSlotPtr& slot, int life, storage::Result<void> served) {
    SlotLogPtr unused;
    {
        base::MutexLock lock(mutex_);
        if (life != slot->life) return;
        if (slot->lost && served) {
            leave(slot, [self = shared_from_this(), slot] { self->left_lost(slot); });
        } else if (!served) {
            unused = std::exchange(slot->log, nullptr);
        }
        if (!slot->lost) {
            note_opened(slot, served);
        } else if (!served) {
            std::ignore = end_lost(slot);
        }
    }
    if (unused) unused->abandon(storage::ErrorCode::kClosed);
    flush();
}

void SlotTable::Impl::note_opened(const HostedSlotPtr& slot, const storage::Result<void>& served) {
    const auto now = options_.clock->now();
    const auto epoch = slot->tenancy.tenure().epoch;
    slot->with_host = served.has_value();
    if (served) {
        slot->tenancy.opened(now);
        if (auto news = slot->tenancy.news(slot->partition, slot->log->written_epoch()))
            outbox_.opened.push_back(*news);
    } else if (slot->tenancy.failed(served.error().code, now)) {
        base::log::warn("cluster", "{}: epoch {} did not open: {}", slot->directory(), epoch,
                        served.error().context);
    }
    go_on(slot);
}

void SlotTable::Impl::release_later(const HostedSlotPtr& slot) {
    {
        base::MutexLock lock(mutex_);
        if (!end_lost(slot)) {
            leaving_.push_back({slot, slot->life, slot->log});
            jobs_->add([self = shared_from_this()] { self->release_some(); });
        }
    }
    flush();
}

void SlotTable::Impl::release_some() {
    std::vector<Leaving> slots;
    std::vector<SlotLogPtr> logs;
    std::chrono::milliseconds patience{};
    {
        base::MutexLock lock(mutex_);
        patience = release_patience_.left();
        slots = std::exchange(leaving_, {});
        for (const auto& one : slots) logs.push_back(one.log);
    }
    if (slots.empty()) return;  // another job has taken more than one
    const auto released = storage::SlotLog::release_together(logs, patience);
    for (std::size_t i = 0; i < slots.size(); ++i) {
        if (released[i]) continue;
        base::log::warn("cluster", "{}: released without a last line: {}",
                        slots[i].slot->directory(), released[i].error().context);
    }
    {
        base::MutexLock lock(mutex_);
        for (const auto& [slot, life, log] : slots) {
            if (life != slot->life) continue;
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
            *places_, [](const auto& place) { return place.second.logs->stalled(); });
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
    leave(slot,
          [self = shared_from_this(), slot, code = why->code] { self->left_failed(slot, code); });
}

void SlotTable::Impl::left_failed(const HostedSlotPtr& slot, storage::ErrorCode why) {
    {
        base::MutexLock lock(mutex_);
        const auto now = options_.clock->now();
        if (!end_lost(slot)) {
            slot->log.reset();
            slot->tenancy.failed(why, now);
            look_after(slot, now);
            go_on(slot);
        }
    }
    flush();
}

void SlotTable::Impl::look_after(const HostedSlotPtr& slot, base::Clock::Steady now) {
    look_at_log(slot);
    auto& tenancy = slot->tenancy;
    if (tenancy.is_due(now)) {
        const auto& volume = tenancy.tenure().volume;
        const auto place = places_->find(volume);
        if (!tenancy.awaits_trial(trials_.well_since(volume))) {
            tenancy.surrender();
        } else if (!closing_ && place != places_->end() && trials_.begin(volume)) {
            jobs_->add([self = shared_from_this(), volume, on = place->second.volume] {
                self->try_writes(volume, *on);
            });
        }
    }
    report_release(*slot);
}

void SlotTable::Impl::try_writes(const std::string& name, storage::Volume& volume) {
    if (!trials_.run(name, volume)) return;
    {
        base::MutexLock lock(mutex_);
        look_after_all();
    }
    flush();
}

std::vector<SlotLogPtr> SlotTable::Impl::open_logs() const {
    std::vector<SlotLogPtr> logs;
    for (const auto& [id, slot] : slots_) {
        if (slot->log) logs.push_back(slot->log);
    }
    return logs;
}

void SlotTable::Impl::flush() {
    SlotOutbox out;
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
    if (slot == slots_.end()) return false;
    const auto state = slot->second->tenancy.state();
    return state != Hosting::kOpening && state != Hosting::kServing;
}

SlotTable::SlotTable(Options options) : impl_(std::make_shared<Impl>(std::move(options))) {}
SlotTable::~SlotTable() = default;

bool SlotTable::apply(const catalog::ImagePtr& next) { return impl_->apply(next); }
std::size_t SlotTable::led() const { return impl_->count(Hosting::kServing); }
std::size_t SlotTable::opening() const { return impl_->count(Hosting::kOpening); }
std::size_t SlotTable::offline() const { return impl_->count(Hosting::kOffline); }
bool SlotTable::is_offline(const SlotId& id) const { return impl_->is_offline(id); }
void SlotTable::tick() { impl_->tick(); }
void SlotTable::replace_place(const std::string& volume, Place place) {
    impl_->set_place(volume, place);
}
void SlotTable::remove_place(const std::string& volume) { impl_->set_place(volume, std::nullopt); }
bool SlotTable::drain(std::size_t width, std::chrono::milliseconds patience) {
    return impl_->drain(width, patience);
}
bool SlotTable::close(std::chrono::milliseconds patience) { return impl_->close(patience); }

}  // namespace kaas::cluster
