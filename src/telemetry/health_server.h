#pragma once

#include "base/metrics.h"
#include "telemetry/error.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace kaas::telemetry {

/// What the health port tells of a process. Called on the health thread; must not block.
struct HealthReport {
    std::function<bool()> live;           ///< `/livez`: 200 or 503. Ticks alone (`TickWatch`).
    std::function<bool()> ready;          ///< `/readyz`: 200 or 503, `{"ready":...}`
    std::function<std::string()> health;  ///< `/healthz`: always 200, a JSON object for people
};

struct HealthServerOptions {
    std::string host = {};  ///< an address; empty for all
    std::uint16_t port = 8080;
    /// More than these are closed at once.
    std::size_t connections_max = 64;
    /// For a request to come, for its answer to leave, and between two requests.
    std::chrono::milliseconds patience = std::chrono::seconds(5);
};

/// Serves `/metrics`, `/livez`, `/readyz` and `/healthz` from a thread of its own: it reports on
/// the others, so it never runs on them. Thread: any. The registry and all that `report` uses
/// outlive it.
class HealthServer {
public:
    /// Binds and serves. In standalone a port that is taken is worth a warning only: the caller
    /// decides.
    [[nodiscard]] static Result<std::unique_ptr<HealthServer>> start(
        HealthServerOptions options, const base::metrics::Registry& registry, HealthReport report);
    /// Closes all connections and joins.
    ~HealthServer();
    HealthServer(const HealthServer&) = delete;
    HealthServer& operator=(const HealthServer&) = delete;

    [[nodiscard]] std::uint16_t port() const;

private:
    class Impl;
    explicit HealthServer(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

}  // namespace kaas::telemetry
