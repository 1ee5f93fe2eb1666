#pragma once

#include "base/result.h"
#include "broker/config/broker_config.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace kaas::broker {

/// Why a broker did not start; the context is the line for the person who started it.
enum class StartFault {
    kVolume,   ///< a directory cannot be used
    kListen,   ///< an address cannot be bound
    kCluster,  ///< the directory is in use, of another cluster, or of a later version
    kHealth,   ///< the health address was asked for and cannot be bound
    kSystem,   ///< the system gives no more threads or descriptors
};

template <class T>
using StartResult = base::Result<T, StartFault>;

/// One broker: volumes, reactors, the cluster's node, the server, and the handlers between them.
///
/// Start: volumes, listeners (their ports must be known before the node registers), node, handlers;
/// then it accepts. Stop: no new connections, open requests end, partitions are released, the
/// session ends. Thread: `start` and `stop` block; not on a reactor.
class Broker {
public:
    struct Options {
        /// The node cannot go on: the process should end. Called at most once, on a thread of
        /// the node.
        std::function<void(const std::string& why)> on_lost = [](const std::string&) {};
    };

    [[nodiscard]] static StartResult<std::unique_ptr<Broker>> start(const BrokerConfig& config,
                                                                    Options options);
    ~Broker();

    /// Name and bound address of each listener, as `PLAINTEXT://127.0.0.1:9092`.
    [[nodiscard]] const std::vector<std::string>& addresses() const;
    /// Bound port of the health server; 0 when there is none.
    [[nodiscard]] std::uint16_t health_port() const;

    /// Ends in good order within `kaas.drain.timeout.ms`: open requests have half of it, the
    /// release of partitions the rest. But a thread that hangs on a volume is joined when it comes
    /// back: who cannot wait for that ends the process. Until it returns, `/readyz` says no. May be
    /// called twice.
    void stop();

private:
    class Impl;
    explicit Broker(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

}  // namespace kaas::broker
