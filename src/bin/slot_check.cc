#include "bin/slot_check.h"

#include "base/clock.h"
#include "base/ids.h"
#include "base/metrics.h"
#include "base/timer_queue.h"
#include "coordinator/done.h"
#include "coordinator/group_config.h"
#include "coordinator/group_metrics.h"
#include "coordinator/group_slot.h"
#include "coordinator/slot_machine.h"
#include "coordinator/slot_writer.h"
#include "coordinator/transaction_requests.h"
#include "coordinator/transaction_slot.h"
#include "storage/transaction_marker.h"

#include <optional>
#include <string>

namespace kaas::bin {
namespace {

/// The broker of a slot that is loaded and never started: nothing is asked of it.
class Nowhere final : public coordinator::SlotWriter,
                      public coordinator::ProducerIdSource,
                      public coordinator::MarkerSink {
public:
    void append(std::string /*change*/) override {}
    void settle(Settled /*done*/) override {}
    void next_producer_id(Got /*got*/) override {}
    void send(const storage::Marker& /*marker*/,
              const coordinator::TransactionPartition& /*partition*/,
              coordinator::Done<coordinator::ErrorCode> /*written*/) override {}
};

std::optional<storage::Damage> load(coordinator::SlotMachine& machine,
                                    const storage::InheritedSlot& slot) {
    const auto loaded = coordinator::load_inherited(machine, slot);
    if (loaded) return std::nullopt;
    return storage::Damage{slot.file, loaded.error().offset, loaded.error().why.context};
}

}  // namespace

std::optional<storage::Damage> check_slot(catalog::SlotKind kind,
                                          const storage::InheritedSlot& slot) {
    Nowhere nowhere;
    base::TimerQueue timers;
    base::metrics::Registry registry;
    const auto& clock = base::Clock::system();
    if (kind == catalog::SlotKind::kGroup) {
        const coordinator::GroupConfig config;
        coordinator::GroupMetrics metrics(registry);
        coordinator::GroupSlot groups(nowhere, timers, clock, config, metrics);
        return load(groups, slot);
    }
    const coordinator::TransactionConfig config;
    auto metrics = coordinator::TransactionMetrics::of(registry);
    coordinator::TransactionSlot transactions({.writer = nowhere,
                                               .timers = timers,
                                               .clock = clock,
                                               .config = config,
                                               .producer_ids = nowhere,
                                               .markers = nowhere,
                                               .metrics = metrics,
                                               .epoch = base::LeaderEpoch(0)});
    return load(transactions, slot);
}

}  // namespace kaas::bin
