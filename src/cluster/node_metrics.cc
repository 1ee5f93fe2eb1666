#include "cluster/node_metrics.h"

#include "base/metrics.h"
#include "base/mutex.h"
#include "catalog/change.h"
#include "catalog/image.h"
#include "cluster/partition_table.h"
#include "cluster/slot_table.h"
#include "storage/partition_log.h"
#include "storage/volume.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace kaas::cluster {
namespace {

constexpr std::string_view kAlive = "kaas_broker_count_alive";
constexpr std::string_view kVersion = "kaas_assignment_version";
constexpr std::string_view kPartitions = "kaas_partitions";
constexpr std::string_view kDamaged = "kaas_partitions_damaged";
constexpr std::string_view kLate = "kaas_partitions_with_late_transactions";
constexpr std::string_view kSlots = "kaas_slots";
constexpr std::string_view kLeaderless = "kaas_partitions_without_leader";
constexpr std::string_view kMoves = "kaas_moves_under_way";
constexpr const char* kFailover = "kaas_failover_duration_seconds";
constexpr const char* kFailoverHelp =
    "What a failover spends its time on: detect and elect on controllers, recover and serve on "
    "whoever leads next.";
constexpr const char* kStale = "kaas_stale_refusals_total";
constexpr const char* kStaleHelp =
    "What was refused because a newer life or reign had begun: report (of a broker's earlier "
    "life), "
    "reign (this controller's own words).";

/// Serving, opening and offline ones, under a name.
template <class Table, class Led>
void sample_states(base::metrics::Registry& registry, std::string_view name, std::string_view help,
                   const Table& table, Led led) {
    registry.sampled(name, help, {{"state", "serving"}},
                     [&table, led] { return static_cast<double>((table.*led)()); });
    registry.sampled(name, help, {{"state", "opening"}},
                     [&table] { return static_cast<double>(table.opening()); });
    registry.sampled(name, help, {{"state", "offline"}},
                     [&table] { return static_cast<double>(table.offline()); });
}

}  // namespace

NodeMetrics::NodeMetrics(base::metrics::Registry& registry, const PartitionTable& table,
                         const SlotTable* slots, LateTransactions late)
    : is_controller(
          registry.gauge("kaas_is_controller", "1 while this process is the controller.")),
      reigns(registry.counter("kaas_controller_failovers_total", "Reigns begun by this process.")),
      reign_start(registry.histogram("kaas_controller_failover_duration_seconds",
                                     "From standing for election to the first act.")),
      pushes(registry.counter("kaas_assignment_pushes_total", "Images taken from a controller.")),
      stale_pushes(registry.counter("kaas_stale_assignments_rejected_total",
                                    "Images of controllers that had been succeeded.")),
      fences(registry.counter("kaas_self_fence_events_total",
                              "Times that a check showed this process its end.")),
      detect(registry.histogram(kFailover, kFailoverHelp, {{"stage", "detect"}})),
      elect(registry.histogram(kFailover, kFailoverHelp, {{"stage", "elect"}})),
      recover(registry.histogram(kFailover, kFailoverHelp, {{"stage", "recover"}})),
      serve(registry.histogram(kFailover, kFailoverHelp, {{"stage", "serve"}})),
      stale_reports(registry.counter(kStale, kStaleHelp, {{"what", "report"}})),
      stale_reigns(registry.counter(kStale, kStaleHelp, {{"what", "reign"}})),
      moves_begun(registry.counter("kaas_moves_begun_total",
                                   "Leaderships that this controller has asked back.")),
      moves_done(registry.counter("kaas_moves_done_total",
                                  "Leaderships that were asked back and have gone elsewhere.")),
      registry_(registry),
      table_(table) {
    registry.sampled(kLeaderless, "Partitions of the cluster that no living broker leads.", {},
                     [this] { return static_cast<double>(tally().without_leader); });
    registry.sampled(kMoves, "Partitions of the cluster on their way to another broker.",
                     {{"kind", "leadership"}},
                     [this] { return static_cast<double>(tally().leaderships); });
    registry.sampled(kMoves, "Partitions of the cluster on their way to another broker.",
                     {{"kind", "reassignment"}},
                     [this] { return static_cast<double>(tally().reassignments); });
    registry.sampled(kAlive, "Brokers with a session.", {}, [&table] {
        const auto image = table.image();
        return static_cast<double>(std::ranges::count_if(
            image->brokers(), [](const auto& entry) { return entry.second->living(); }));
    });
    registry.sampled(kVersion, "Changes that the controller of this epoch has made.", {},
                     [&table] { return static_cast<double>(table.image()->version().changes); });
    sample_states(registry, kPartitions, "Partitions assigned to this broker.", table,
                  &PartitionTable::serving);
    registry.sampled(kDamaged, "Serving partitions with records that cannot be read.", {},
                     [&table] { return static_cast<double>(table.damaged()); });
    registry.sampled(kLate,
                     "Partitions with a transaction that its coordinator should have ended long "
                     "ago.",
                     {}, [&table, late] {
                         const auto before = late.clock->wall_ms() - late.after.count();
                         return static_cast<double>(
                             std::ranges::count_if(table.open_logs(), [before](const auto& log) {
                                 return log->has_late_transaction(before);
                             }));
                     });
    if (slots == nullptr) return;
    sample_states(registry, kSlots, "Coordinators' slots assigned to this broker.", *slots,
                  &SlotTable::led);
}

NodeMetrics::~NodeMetrics() {
    registry_.remove(kAlive, {});
    registry_.remove(kVersion, {});
    registry_.remove(kDamaged, {});
    registry_.remove(kLate, {});
    registry_.remove(kLeaderless, {});
    for (const auto* kind : {"leadership", "reassignment"})
        registry_.remove(kMoves, {{"kind", kind}});
    for (const auto* state : {"serving", "opening", "offline"}) {
        registry_.remove(kPartitions, {{"state", state}});
        registry_.remove(kSlots, {{"state", state}});
    }
}

NodeMetrics::Tally NodeMetrics::tally() {
    const auto image = table_.image();
    base::MutexLock lock(mutex_);
    if (image->version() == tallied_) return tally_;
    Tally now;
    image->for_each_topic([&](const catalog::Topic& topic) {
        for (const auto& partition : topic.partitions) {
            now.without_leader += !image->led(partition);
            now.leaderships += partition.asked_back;
            now.reassignments += !partition.target.empty();
        }
    });
    tallied_ = image->version();
    return tally_ = now;
}

void NodeMetrics::count_moves(const catalog::Image& before,
                              const std::vector<catalog::Change>& changes) {
    for (const auto& change : changes) {
        if (const auto* asked = std::get_if<catalog::AskedBack>(&change)) {
            moves_begun.add(asked->epochs.size());
        }
        const auto* assigned = std::get_if<catalog::Assigned>(&change);
        if (assigned == nullptr) continue;
        for (const auto& one : assigned->assignments) {
            const auto* partition = before.partition(one.partition);
            if (partition != nullptr && partition->asked_back) moves_done.add();
        }
    }
}

void NodeMetrics::set_space(const std::string& volume, const storage::Space& space) {
    const base::metrics::Labels labels = {{"log_dir", volume}};
    registry_.gauge("kaas_log_dir_total_bytes", "Size of the volume.", labels)
        .set(static_cast<std::int64_t>(space.total_bytes));
    registry_.gauge("kaas_log_dir_usable_bytes", "What is free on the volume.", labels)
        .set(static_cast<std::int64_t>(space.usable_bytes));
}

}  // namespace kaas::cluster
