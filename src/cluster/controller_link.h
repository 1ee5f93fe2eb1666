#pragma once

#include "base/executor.h"
#include "base/metrics.h"
#include "base/uuid.h"
#include "client/channel.h"
#include "cluster/uplink.h"
#include "net/reactor.h"

#include <chrono>
#include <memory>

namespace kaas::cluster {

/// The uplink over the network: BrokerRegistration and reports over one connection, the wait for
/// news over another, so that neither waits for the other (a broker answers a connection's requests
/// one by one).
///
/// A connection that closes is opened again at once: refused means that the process is gone. Owns
/// its state on the reactor. Thread: any; the reactor must not be stopped before this is gone.
class ControllerLink final : public Uplink {
public:
    struct Options {
        net::Reactor* reactor = nullptr;
        client::Channel::Options channel;  ///< what all channels share
        std::chrono::milliseconds heartbeat_interval{500};
        std::chrono::milliseconds session_timeout{6'000};
        /// Gets the time from a report to its answer, if set; outlives this.
        base::metrics::Histogram* round_trip = nullptr;
    };
    explicit ControllerLink(Options options);
    ~ControllerLink() override;

    void listen(Listener listener) override;
    void follow(const ControllerAddress& address, Registration registration) override;
    void watch(catalog::ImageVersion have) override;
    void report(Report report) override;
    bool flush(std::chrono::milliseconds patience) override;
    void forget() override;
    [[nodiscard]] Report take_back() override;

private:
    class Impl;
    net::Reactor& reactor_;
    std::shared_ptr<Impl> impl_;
};

}  // namespace kaas::cluster
