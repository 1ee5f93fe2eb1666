#include "broker/health.h"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>

namespace kaas::broker {
namespace {

bool is_ready(cluster::Node& node) {
    return node.partitions().opening() == 0 && node.partitions().offline() == 0 &&
           node.slots()->opening() == 0 && node.slots()->offline() == 0;
}

/// True when brokers take this one for their controller, and its reign has ended.
bool lacks_office(cluster::Node& node) {
    return node.partitions().image()->controller() == node.id() && !node.controller().reigning();
}

boost::json::array full_volumes(cluster::Node& node) {
    boost::json::array full;
    for (const auto& dir : node.log_dirs()) {
        if (dir.full) full.emplace_back(dir.name);
    }
    return full;
}

const char* status_of(cluster::Node& node, bool wedged, bool draining) {
    if (wedged) return "wedged";
    if (draining) return "draining";
    if (node.storage_stalled()) return "stalled";
    const bool well = is_ready(node) && !lacks_office(node) && full_volumes(node).empty() &&
                      node.partitions().damaged() == 0;
    return well ? "ok" : "degraded";
}

std::string describe(cluster::Node& node, telemetry::TickWatch& ticks, const BrokerConfig& config,
                     bool draining) {
    auto image = node.partitions().image();
    auto& partitions = node.partitions();
    auto stale = ticks.stale();
    boost::json::object out;
    out["status"] = status_of(node, !stale.empty(), draining);
    out["broker_id"] = node.id().value();
    out["cluster_id"] = node.cluster_id();
    boost::json::array listeners;
    for (const auto& listener : config.listeners) listeners.emplace_back(listener.name);
    out["listeners"] = std::move(listeners);
    out["is_controller"] = image->controller() == node.id() && node.controller().reigning();
    out["controller_id"] = image->controller().value();
    out["controller_epoch"] = image->version().epoch.value();
    out["partitions_led"] = partitions.serving();
    out["partitions_assigned"] = partitions.serving() + partitions.opening() + partitions.offline();
    out["partitions_recovering"] = partitions.opening();
    out["partitions_offline"] = partitions.offline();
    out["partitions_damaged"] = partitions.damaged();
    out["slots_led"] = node.slots()->led();
    out["slots_opening"] = node.slots()->opening();
    out["slots_offline"] = node.slots()->offline();
    boost::json::array missing;
    for (const auto& volume : node.missing_volumes()) {
        missing.push_back({{"volume", volume.name},
                           {"path", volume.path},
                           {"partitions", volume.partitions},
                           {"why", volume.why}});
    }
    out["missing_volumes"] = std::move(missing);
    out["full_volumes"] = full_volumes(node);
    out["storage_stalled"] = node.storage_stalled();
    boost::json::array wedged;
    for (const auto& thread : stale) wedged.emplace_back(thread);
    out["wedged_threads"] = std::move(wedged);
    return boost::json::serialize(out);
}

}  // namespace

telemetry::HealthReport health_report(cluster::Node& node, net::ReactorPool& reactors,
                                      const base::Loop& coordinators, const BrokerConfig& config,
                                      const std::atomic<bool>& draining) {
    auto ticks = std::make_shared<telemetry::TickWatch>();
    for (std::size_t i = 0; i < reactors.size(); ++i) {
        ticks->watch(fmt::format("reactor-{}", i), [&reactors, i] { return reactors[i].ticks(); });
    }
    ticks->watch("coordinators", [&coordinators] { return coordinators.ticks(); });
    telemetry::HealthReport report;
    report.live = [ticks] { return ticks->stale().empty(); };
    report.ready = [ticks, &node, &draining] {
        return !draining && ticks->stale().empty() && is_ready(node);
    };
    report.health = [ticks, &node, &config, &draining] {
        return describe(node, *ticks, config, draining);
    };
    return report;
}

}  // namespace kaas::broker
