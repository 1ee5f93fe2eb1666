#pragma once

#include "broker/call.h"
#include "broker/services.h"
#include "net/exchange.h"

#include <memory>

namespace kaas::broker {

/// Takes each request to its handler: reads the header, refuses what is not served, decodes.
///
/// As Apache does: a request that cannot be read, or of a key or version that is not served, closes
/// the connection; only ApiVersions of an unknown version is answered (KIP-511). Thread: each
/// connection's reactor.
class Dispatcher final : public net::RequestHandler {
public:
    /// Must have been called before the first request comes: listeners are bound, so that their
    /// ports are known, before there is anything to serve with.
    void begin(Services& services) { services_ = &services; }

    void handle(std::unique_ptr<net::Exchange> exchange) override;
    void disconnected(const net::Peer& peer) override;
    void draining() override;

private:
    Services* services_ = nullptr;
};

}  // namespace kaas::broker
