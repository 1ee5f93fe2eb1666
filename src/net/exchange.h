#pragma once

#include "base/buffer.h"
#include "net/reactor.h"
#include "storage/file_slice.h"
#include "wire/writer.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace kaas::net {

/// An answer as it goes on the wire. `output` is a whole frame, length prefix and header included
/// (`wire::encode_response`); each of its splices stands for the slice that its cookie indexes,
/// sent from the file by sendfile.
struct Response {
    wire::Output output;
    std::vector<storage::FileSlice> slices;
};

/// What a handler may know of the connection that asks. Lives as long as any exchange of it.
struct Peer {
    std::string listener;  ///< name, as in `listeners`: answers name this listener's addresses
    std::string security_protocol;  ///< PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL
    std::string address;            ///< remote, without port
    std::uint16_t port = 0;
    std::string principal = "User:ANONYMOUS";
    std::uint64_t connection_id = 0;
    std::string software_name;  ///< of ApiVersions (KIP-511)
    std::string software_version;
};

/// One request and its place in the connection's order of answers.
///
/// A connection handles one request at a time: the next is not read out before `respond`,
/// `no_response` or `pass`. `pass` lets it start while this answer is still open (Produce: once all
/// its batches are appended); answers still leave in order, at most 64 open. After the
/// connection is gone, all calls are harmless.
/// Thread: the connection's reactor only; posting to `reactor()` brings others there. Dropping an
/// exchange without an answer (on any thread) closes the connection.
class Exchange {
public:
    virtual ~Exchange() = default;

    [[nodiscard]] virtual const base::FrameRef& frame() const = 0;
    [[nodiscard]] virtual Peer& peer() = 0;
    /// The connection's: a `base::Executor`, with timers.
    [[nodiscard]] virtual Reactor& reactor() = 0;

    virtual void pass() = 0;
    virtual void respond(Response response) = 0;
    /// Closes the connection once this answer has left.
    virtual void respond_last(Response response, const std::string& why) = 0;
    /// acks=0: no byte goes back.
    virtual void no_response() = 0;
    /// Closes the connection after the answers before this one have left.
    virtual void close(const std::string& why) = 0;
};

/// Whoever answers requests; one for all connections.
/// Thread: called on each connection's reactor; must not block.
class RequestHandler {
public:
    virtual ~RequestHandler() = default;
    virtual void handle(std::unique_ptr<Exchange> exchange) = 0;
    /// The connection is gone: forget what waits for it (parked fetches).
    virtual void disconnected(const Peer& peer) = 0;
    /// The server stops: once on each reactor that had connections, whose open requests should be
    /// answered as soon as they can be. None comes after.
    virtual void draining() {}
};

}  // namespace kaas::net
