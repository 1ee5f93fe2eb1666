#pragma once

#include "base/clock.h"
#include "base/ids.h"
#include "base/loop.h"
#include "base/metrics.h"
#include "base/mutex.h"
#include "base/timer_queue.h"
#include "broker/coordination/group_lag.h"
#include "broker/coordination/slot_seat.h"
#include "catalog/config_map.h"
#include "catalog/image.h"
#include "cluster/slot_host.h"
#include "coordinator/group_config.h"
#include "coordinator/group_metrics.h"
#include "coordinator/group_slot.h"
#include "coordinator/transaction_slot.h"
#include "wire/error_code.h"

#include <cstddef>
#include <expected>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

namespace kaas::broker {

/// The coordinators of this broker: the state machines of the slots that it leads, all on one loop,
/// and the way from a handler to the one that has an id.
///
/// Exists before the node, whose slots it hosts, and outlives it; state machines start once `begin`
/// was called, because transactions that a crash has left half way go on at once.
/// Thread: any, unless said otherwise. What is called back runs on the loop.
class Coordination final : public cluster::SlotHost {
public:
    struct Options {
        base::BrokerId self;
        base::Clock* clock = &base::Clock::system();
        base::metrics::Registry* metrics = nullptr;
        coordinator::GroupConfig groups;
        coordinator::TransactionConfig transactions;
        /// `max.message.bytes` of a topic with such configs; empty: as `groups` says.
        std::function<std::size_t(const catalog::ConfigMap&)> record_max_bytes{};
        /// Used from `begin` on.
        coordinator::ProducerIdSource* producer_ids = nullptr;
        coordinator::MarkerSink* markers = nullptr;
    };

    explicit Coordination(const Options& options);
    ~Coordination() override;

    /// Whether a slot that is assigned here is not served for longer than it takes to open it.
    using IsOffline = std::function<bool(const cluster::SlotId&)>;
    /// What state machines need of the broker is there; and what runs on the loop.
    void begin(GroupLag::EndOffset end_of, IsOffline is_offline);
    /// Runs what is under way on the loop, and ends it. Slots that the node could not release in
    /// time are left here.
    void stop();

    // SlotHost.
    void open(const cluster::SlotId& id, storage::OpenedSlot opened, Served served) override;
    void close(const cluster::SlotId& id, std::move_only_function<void()> closed) override;

    /// Sees each image: offsets of topics that are gone go. Thread: control.
    void apply(const catalog::ImagePtr& next);

    /// The slot of an id: COORDINATOR_LOAD_IN_PROGRESS when it is on its way here, NOT_COORDINATOR
    /// when another broker leads it, there are none yet, or it is offline (Apache
    /// `CoordinatorState.FAILED`). Clients look for the coordinator then, find this broker, and
    /// pause before they come back. They must find it: where a lookup fails, Java's admin client
    /// repeats it without a pause.
    template <class Machine>
    using Use = std::move_only_function<void(std::expected<Machine*, wire::ErrorCode>)>;
    template <class Machine>
    using UseAll =
        std::move_only_function<void(std::expected<std::vector<Machine*>, wire::ErrorCode>)>;
    using UseGroups = Use<coordinator::GroupSlot>;
    using UseTransactions = Use<coordinator::TransactionSlot>;

    /// `image` is what the asker goes by. `use` runs on the loop, once.
    void with_group(const catalog::Image& image, std::string_view group_id, UseGroups use);
    void with_transaction(const catalog::Image& image, std::string_view transactional_id,
                          UseTransactions use);
    /// The group slot that is a partition of `__consumer_offsets`, for markers.
    void with_group_slot(const catalog::Image& image, base::PartitionId slot, UseGroups use);
    /// All slots that this broker serves. An error when some are on their way here:
    /// COORDINATOR_LOAD_IN_PROGRESS. Those that are offline are left out, as in Apache.
    void with_all_groups(const catalog::Image& image, UseAll<coordinator::GroupSlot> use);
    void with_all_transactions(const catalog::Image& image,
                               UseAll<coordinator::TransactionSlot> use);

    [[nodiscard]] const coordinator::TransactionConfig& transaction_config() const {
        return options_.transactions;
    }
    /// Where answers of other threads come back to, for state machines.
    [[nodiscard]] base::Loop& loop() { return loop_; }

private:
    template <class Machine>
    using Seat = std::shared_ptr<SlotSeat<Machine>>;
    template <class Machine>
    using Seats = std::map<base::PartitionId, Seat<Machine>>;

    template <class Machine>
    [[nodiscard]] Seats<Machine>& seats();
    template <class Machine>
    void take_seat(base::PartitionId slot, storage::OpenedSlot opened, Served served,
                   const typename SlotSeat<Machine>::Make& make);
    template <class Machine>
    void start(base::PartitionId slot, const Seat<Machine>& seat, Served served);
    /// What was deleted while nobody led the slot.
    void catch_up(coordinator::GroupSlot& groups);
    void catch_up(coordinator::TransactionSlot&) {}
    void update_lag();
    /// `max.message.bytes` of the groups' topic is a config that may change.
    void take_limit(const catalog::Image& next, const catalog::Image* before);
    template <class Machine>
    void give_up_seat(base::PartitionId slot, std::move_only_function<void()> closed);
    template <class Machine>
    void with_slot(const catalog::Image& image, std::optional<base::PartitionId> slot,
                   Use<Machine> use);
    /// Of the loop: why a slot that is led here is not served.
    [[nodiscard]] wire::ErrorCode why_not_served(const cluster::SlotId& id) const;
    template <class Machine>
    void with_all(const catalog::Image& image, UseAll<Machine> use);
    [[nodiscard]] catalog::ImagePtr image() const KAAS_EXCLUDES(mutex_);

    const Options options_;
    coordinator::GroupMetrics group_metrics_;
    coordinator::TransactionMetrics transaction_metrics_;
    mutable base::Mutex mutex_;
    catalog::ImagePtr image_ KAAS_GUARDED_BY(mutex_);
    // Of the loop.
    coordinator::GroupConfig group_config_;
    bool begun_ = false;
    std::vector<std::move_only_function<void()>> at_begin_;  ///< slots that are to be started then
    Seats<coordinator::GroupSlot> groups_;                   ///< that are served
    Seats<coordinator::TransactionSlot> transactions_;
    GroupLag group_lag_;
    GroupLag::EndOffset end_of_;
    IsOffline is_offline_;
    base::TimerQueue::Entry lag_timer_;
    /// Ends first: what runs on it uses the rest.
    base::Loop loop_;
};

}  // namespace kaas::broker
