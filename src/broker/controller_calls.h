#pragma once

#include "base/clock.h"
#include "base/ids.h"
#include "client/peers.h"
#include "cluster/admin.h"
#include "cluster/controller.h"
#include "cluster/controller_address.h"
#include "cluster/error.h"
#include "net/reactor.h"
#include "wire/messages/envelope.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace kaas::broker {

class Call;

/// In what a broker has sent on: which request it is.
[[nodiscard]] cluster::Attempt attempt_of(const wire::EnvelopeRequest& envelope);

/// The way to the controller, wherever it is: what this broker's own does not answer goes to
/// another process (DESIGN 8), again and again while controllers change, until its time is over.
/// Thread: any; answers come to the caller's home.
class ControllerCalls {
public:
    struct Options {
        cluster::Controller* controller = nullptr;
        const base::Clock* clock = &base::Clock::system();
        /// The way to other processes; null when there are none.
        net::Reactor* link = nullptr;
        std::function<std::optional<cluster::ControllerAddress>()> address{};
        client::Peers* peers = nullptr;  ///< of `link`
        base::BrokerId self;
    };
    explicit ControllerCalls(Options options) : options_(std::move(options)) {}

    /// True when another process is to be asked.
    [[nodiscard]] bool elsewhere() const {
        return options_.link != nullptr && !options_.controller->reigning();
    }
    /// Sends a client's request as it came, in an Envelope (KIP-590), and its answer back. Served
    /// here when this broker has become the controller meanwhile.
    void forward(std::shared_ptr<Call> call);
    /// For what the controller has answered to a request of a client. True when it answered because
    /// its office is over: then the request is on its way to the next one, and is not to be
    /// answered. Thread: the call's home.
    [[nodiscard]] bool ask_next(const std::shared_ptr<Call>& call, const cluster::Error& why);

    void create_topics(cluster::CreateTopics request,
                       cluster::Reply<std::vector<cluster::CreatedTopic>> reply);
    void allocate_producer_ids(std::int32_t count, cluster::Reply<cluster::ProducerIdBlock> reply);

private:
    template <class Request>
    class Asking;
    /// `answered` runs on the link's reactor, with the answer, or with why there is none:
    /// kRequestTimedOut. `here` instead, when this broker reigns; `again`: others were asked
    /// before.
    template <class Request>
    void ask(
        std::shared_ptr<Request> request, base::Clock::Steady deadline,
        std::move_only_function<void(bool again)> here,
        std::move_only_function<void(cluster::Result<const typename Request::Response*>)> answered);

    const Options options_;
};

}  // namespace kaas::broker
