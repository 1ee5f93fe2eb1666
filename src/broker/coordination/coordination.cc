#include "broker/coordination/coordination.h"

#include "base/ids.h"
#include "base/mutex.h"
#include "catalog/model.h"
#include "catalog/slot.h"
#include "storage/error.h"

#include <fmt/format.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace kaas::broker {
namespace {

using coordinator::GroupSlot;
using coordinator::TransactionSlot;
using wire::ErrorCode;

/// Between two looks at how far groups are behind: what dashboards sample.
constexpr std::chrono::seconds kLagInterval{5};

template <class Machine>
constexpr catalog::SlotKind kKindOf =
    std::is_same_v<Machine, GroupSlot> ? catalog::SlotKind::kGroup
                                       : catalog::SlotKind::kTransaction;

std::optional<base::PartitionId> slot_of(const catalog::Image& image, catalog::SlotKind kind,
                                         std::string_view id) {
    const catalog::Topic* topic = image.topic(catalog::slot_topic(kind));
    if (topic == nullptr) return std::nullopt;
    return catalog::slot_of(id, topic->partitions.size());
}

bool is_led(const catalog::Image& image, const catalog::Partition& slot, base::BrokerId broker) {
    return image.leader(slot) == broker;
}

storage::Result<void> load(coordinator::SlotMachine& machine,
                           const storage::InheritedSlot& inherited) {
    const auto loaded = coordinator::load_inherited(machine, inherited);
    if (loaded) return {};
    return storage::fail(storage::ErrorCode::kCorrupt,
                         fmt::format("{} at byte {}: {}", inherited.file, loaded.error().offset,
                                     loaded.error().why.context));
}

}  // namespace

Coordination::Coordination(const Options& options)
    : options_(options),
      group_metrics_(*options.metrics),
      transaction_metrics_(coordinator::TransactionMetrics::of(*options.metrics)),
      group_config_(options.groups),
      group_lag_(*options.metrics),
      loop_("coordinators", *options.clock) {}

Coordination::~Coordination() { stop(); }

template <>
Coordination::Seats<GroupSlot>& Coordination::seats<GroupSlot>() {
    return groups_;
}
template <>
Coordination::Seats<TransactionSlot>& Coordination::seats<TransactionSlot>() {
    return transactions_;
}

void Coordination::stop() {
    loop_.post([this] {
        at_begin_.clear();
        for (const auto& [slot, seat] : std::exchange(groups_, {})) seat->machine().close();
        for (const auto& [slot, seat] : std::exchange(transactions_, {})) seat->machine().close();
        loop_.timers().cancel(lag_timer_);
    });
    loop_.stop();
    end_of_ = {};
    is_offline_ = {};
}

void Coordination::begin(GroupLag::EndOffset end_of, IsOffline is_offline) {
    loop_.post([this, end_of = std::move(end_of), is_offline = std::move(is_offline)]() mutable {
        begun_ = true;
        end_of_ = std::move(end_of);
        is_offline_ = std::move(is_offline);
        update_lag();
        for (auto& start_slot : std::exchange(at_begin_, {})) start_slot();
    });
}

void Coordination::update_lag() {
    std::vector<GroupSlot*> slots;
    for (const auto& [slot, seat] : groups_) slots.push_back(&seat->machine());
    group_lag_.update(slots, end_of_);
    loop_.timers().arm(lag_timer_, options_.clock->now() + kLagInterval, [this] { update_lag(); });
}

void Coordination::open(const cluster::SlotId& id, storage::OpenedSlot opened, Served served) {
    if (id.kind == catalog::SlotKind::kGroup) {
        const auto make = [this](auto& writer) {
            return std::make_unique<GroupSlot>(writer, loop_.timers(), *options_.clock,
                                               group_config_, group_metrics_);
        };
        return take_seat<GroupSlot>(id.slot, std::move(opened), std::move(served), make);
    }
    const auto make = [this, epoch = opened.log->epoch()](auto& writer) {
        return std::make_unique<TransactionSlot>(
            coordinator::TransactionServices{.writer = writer,
                                             .timers = loop_.timers(),
                                             .clock = *options_.clock,
                                             .config = options_.transactions,
                                             .producer_ids = *options_.producer_ids,
                                             .markers = *options_.markers,
                                             .metrics = transaction_metrics_,
                                             .epoch = epoch});
    };
    take_seat<TransactionSlot>(id.slot, std::move(opened), std::move(served), make);
}

template <class Machine>
void Coordination::take_seat(base::PartitionId slot, storage::OpenedSlot opened, Served served,
                             const typename SlotSeat<Machine>::Make& make) {
    auto seat = std::make_shared<SlotSeat<Machine>>(loop_, opened.log, make);
    if (opened.inherited) {
        if (auto loaded = load(seat->machine(), *opened.inherited); !loaded) {
            return served(std::move(loaded));
        }
    }
    loop_.post([this, slot, seat = std::move(seat), served = std::move(served)]() mutable {
        if (begun_) return start<Machine>(slot, seat, std::move(served));
        at_begin_.emplace_back([this, slot, seat, served = std::move(served)]() mutable {
            start<Machine>(slot, seat, std::move(served));
        });
    });
}

template <class Machine>
void Coordination::start(base::PartitionId slot, const Seat<Machine>& seat, Served served) {
    seat->start(
        [this, slot, seat, served = std::move(served)](storage::Result<void> outcome) mutable {
            if (outcome) {
                seats<Machine>()[slot] = seat;
                catch_up(seat->machine());
            }
            served(std::move(outcome));
        });
}

void Coordination::catch_up(GroupSlot& groups) {
    const auto now = image();
    if (!now) return;
    groups.keep_topics([&](const base::TopicId& topic) { return now->topic(topic) != nullptr; });
}

void Coordination::close(const cluster::SlotId& id, std::move_only_function<void()> closed) {
    loop_.post([this, id, closed = std::move(closed)]() mutable {
        if (id.kind == catalog::SlotKind::kGroup) {
            give_up_seat<GroupSlot>(id.slot, std::move(closed));
        } else {
            give_up_seat<TransactionSlot>(id.slot, std::move(closed));
        }
    });
}

template <class Machine>
void Coordination::give_up_seat(base::PartitionId slot, std::move_only_function<void()> closed) {
    seats<Machine>().extract(slot).mapped()->close(std::move(closed));
}

catalog::ImagePtr Coordination::image() const {
    base::MutexLock lock(mutex_);
    return image_;
}

void Coordination::apply(const catalog::ImagePtr& next) {
    catalog::ImagePtr before;
    {
        base::MutexLock lock(mutex_);
        before = std::exchange(image_, next);
    }
    take_limit(*next, before.get());
    if (!before) return;
    std::vector<coordinator::DeletedTopic> gone;
    for (const auto& [was, now] : next->changed_topics(*before)) {
        if (was && !now) gone.push_back({.id = was->id, .name = was->name});
    }
    if (gone.empty()) return;
    loop_.post([this, gone = std::move(gone)] {
        for (const auto& [slot, seat] : groups_) seat->machine().topics_deleted(gone);
    });
}

void Coordination::take_limit(const catalog::Image& next, const catalog::Image* before) {
    const auto name = catalog::slot_topic(catalog::SlotKind::kGroup);
    const auto* topic = next.topic(name);
    const bool is_new = topic != nullptr && (before == nullptr || before->topic(name) != topic);
    if (!is_new || !options_.record_max_bytes) return;
    loop_.post([this, limit = options_.record_max_bytes(topic->configs)] {
        group_config_.record_max_bytes = limit;
    });
}

template <class Machine>
void Coordination::with_slot(const catalog::Image& image, std::optional<base::PartitionId> slot,
                             Use<Machine> use) {
    const catalog::Topic* topic = image.topic(catalog::slot_topic(kKindOf<Machine>));
    const catalog::Partition* partition =
        topic == nullptr || !slot ? nullptr : topic->partition(*slot);
    const bool led = partition != nullptr && is_led(image, *partition, options_.self);
    loop_.post(
        [this, slot = slot.value_or(base::PartitionId(-1)), led, use = std::move(use)]() mutable {
            const auto found = seats<Machine>().find(slot);
            if (found != seats<Machine>().end()) return use(&found->second->machine());
            use(std::unexpected(led ? why_not_served({kKindOf<Machine>, slot})
                                    : ErrorCode::kNotCoordinator));
        });
}

ErrorCode Coordination::why_not_served(const cluster::SlotId& id) const {
    return is_offline_ && is_offline_(id) ? ErrorCode::kNotCoordinator
                                          : ErrorCode::kCoordinatorLoadInProgress;
}

void Coordination::with_group(const catalog::Image& image, std::string_view group_id,
                              UseGroups use) {
    with_slot<GroupSlot>(image, slot_of(image, catalog::SlotKind::kGroup, group_id),
                         std::move(use));
}

void Coordination::with_transaction(const catalog::Image& image, std::string_view transactional_id,
                                    UseTransactions use) {
    with_slot<TransactionSlot>(
        image, slot_of(image, catalog::SlotKind::kTransaction, transactional_id), std::move(use));
}

void Coordination::with_group_slot(const catalog::Image& image, base::PartitionId slot,
                                   UseGroups use) {
    with_slot<GroupSlot>(image, slot, std::move(use));
}

template <class Machine>
void Coordination::with_all(const catalog::Image& image, UseAll<Machine> use) {
    std::vector<base::PartitionId> led;
    if (const auto* topic = image.topic(catalog::slot_topic(kKindOf<Machine>))) {
        for (std::size_t i = 0; i < topic->partitions.size(); ++i) {
            if (is_led(image, topic->partitions[i], options_.self)) {
                led.emplace_back(static_cast<std::int32_t>(i));
            }
        }
    }
    loop_.post([this, led = std::move(led), use = std::move(use)]() mutable {
        std::vector<Machine*> machines;
        for (const auto slot : led) {
            const auto found = seats<Machine>().find(slot);
            if (found != seats<Machine>().end()) {
                machines.push_back(&found->second->machine());
                continue;
            }
            const auto error = why_not_served({kKindOf<Machine>, slot});
            if (error != ErrorCode::kNotCoordinator) return use(std::unexpected(error));
        }
        use(std::move(machines));
    });
}

void Coordination::with_all_groups(const catalog::Image& image, UseAll<GroupSlot> use) {
    with_all<GroupSlot>(image, std::move(use));
}

void Coordination::with_all_transactions(const catalog::Image& image, UseAll<TransactionSlot> use) {
    with_all<TransactionSlot>(image, std::move(use));
}

}  // namespace kaas::broker
