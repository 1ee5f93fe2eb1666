#pragma once

#include "base/ids.h"
#include "catalog/image.h"
#include "client/channel.h"
#include "client/error.h"
#include "client/peers.h"

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

namespace kaas::broker {

/// Calls to brokers by their id, where the newest image has them, over channels of its own: a
/// broker answers what comes over one connection in order, so calls that may wait for one another
/// take separate ways.
///
/// Calls to a broker that leaves, or comes back elsewhere, end at once, with kDown.
/// Thread: the channels' reactor.
class BrokerCalls {
public:
    /// As Apache's `request.timeout.ms` of a broker.
    static constexpr std::chrono::seconds kPatience{30};

    /// `common`: what all channels share.
    explicit BrokerCalls(client::Channel::Options common) : peers_(std::move(common)) {}

    void apply(const catalog::Image& next);
    /// Ends what is under way; what is called afterwards ends at once. Before the reactor ends.
    void end();

    /// `request` is encoded before this returns. `done` may run within the call. Errors: those of a
    /// channel; kUnreachable for a broker that the image does not have.
    template <class Request>
    void call(base::BrokerId to, const Request& request, client::Channel::Done<Request> done) {
        const auto at = addresses_.find(to);
        if (at == addresses_.end()) {
            return done(client::fail(client::ErrorCode::kUnreachable, "the broker is not there"));
        }
        const auto& [host, port] = at->second;
        peers_.at(host, port)
            .template call<Request>(request, Request::kMaxVersion, kPatience, std::move(done));
    }

private:
    bool ended_ = false;
    client::Peers peers_;
    std::map<base::BrokerId, std::pair<std::string, std::uint16_t>> addresses_;
};

}  // namespace kaas::broker
