#pragma once

#include "base/buffer.h"
#include "broker/call.h"
#include "net/exchange.h"
#include "wire/error_code.h"

#include <memory>
#include <string>
#include <utility>

namespace kaas::broker {

/// A request that came to the controller in an Envelope (KIP-590): its answer goes back in one.
/// Thread: the connection's reactor.
class EnvelopeExchange final : public net::Exchange {
public:
    /// `request` is a part of the envelope's frame. `peer`: who sent it to the other broker.
    EnvelopeExchange(CallPtr envelope, base::FrameRef request, net::Peer peer)
        : envelope_(std::move(envelope)), request_(std::move(request)), peer_(std::move(peer)) {}
    ~EnvelopeExchange() override;

    [[nodiscard]] const base::FrameRef& frame() const override { return request_; }
    [[nodiscard]] net::Peer& peer() override { return peer_; }
    [[nodiscard]] net::Reactor& reactor() override { return envelope_->reactor(); }
    void pass() override {}  // the envelope has passed already
    void respond(net::Response response) override;
    void respond_last(net::Response response, const std::string& /*why*/) override {
        respond(std::move(response));
    }
    void no_response() override { close("a request without an answer"); }
    void close(const std::string& why) override;
    /// Instead of an answer: the broker that sent it has to do something about it.
    void refuse(wire::ErrorCode why);

private:
    CallPtr envelope_;  ///< null once answered
    base::FrameRef request_;
    net::Peer peer_;
};

}  // namespace kaas::broker
