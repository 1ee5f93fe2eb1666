#pragma once

#include "base/executor.h"
#include "base/metrics.h"
#include "broker/config/broker_config.h"
#include "catalog/model.h"
#include "net/error.h"
#include "net/exchange.h"
#include "net/reactor.h"
#include "net/server.h"
#include "security/scram.h"

#include <chrono>
#include <string>

namespace kaas::broker {

/// Where the other brokers of the cluster come in: a server with a reactor of its own, so that no
/// client holds them up.
///
/// Owns the reactor (thread `kaas-internal`), the server, and what a broker must show. What handles
/// the requests, and the pool, outlive it; exchanges and frames are dead before it is.
/// Thread: not a reactor's; one at a time.
class InternalListener {
public:
    InternalListener(net::ServerOptions options, net::RequestHandler& handler,
                     base::Executor& io_pool, base::metrics::Registry& registry);

    /// Binds; gives what other brokers are told. Errors: those of `net::Server::listen`.
    [[nodiscard]] net::Result<catalog::Endpoint> listen(const InternalListenerConfig& config);
    /// From `start` on brokers with this secret are let in (`security::cluster_secret`).
    void trust(std::string secret);
    /// Accepts.
    void start() { server_.start(); }
    void stop(std::chrono::milliseconds patience) { server_.stop(patience); }

    /// Also for channels to other brokers.
    [[nodiscard]] net::Reactor& reactor() { return reactors_[0]; }
    [[nodiscard]] const security::ScramCredential& credential() const { return credential_; }
    /// What this broker shows to others.
    [[nodiscard]] const std::string& secret() const { return secret_; }

private:
    std::string secret_;
    security::ScramCredential credential_;
    net::ReactorPool reactors_;
    net::Server server_;
};

}  // namespace kaas::broker
