#pragma once

#include "base/loop.h"
#include "broker/config/broker_config.h"
#include "cluster/node.h"
#include "net/reactor.h"
#include "telemetry/health_server.h"
#include "telemetry/tick_watch.h"

#include <atomic>
#include <memory>
#include <string>

namespace kaas::broker {

/// What `/livez`, `/readyz` and `/healthz` say of this broker (DESIGN 10): alive while the reactors
/// tick, ready while all that is assigned here is open and it is not `draining`. Everything given
/// outlives the health server.
[[nodiscard]] telemetry::HealthReport health_report(cluster::Node& node, net::ReactorPool& reactors,
                                                    const base::Loop& coordinators,
                                                    const BrokerConfig& config,
                                                    const std::atomic<bool>& draining);

}  // namespace kaas::broker
