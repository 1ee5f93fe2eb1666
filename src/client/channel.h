#pragma once

#include "base/executor.h"
#include "client/error.h"
#include "net/reactor.h"
#include "wire/message.h"
#include "wire/reader.h"
#include "wire/types.h"
#include "wire/writer.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace kaas::client {

class Link;

/// Calls to one broker, over one connection at a time.
///
/// The first call opens the connection, and so does the first one after its end; calls wait while
/// it opens. It does not back off: callers pace themselves, and only an opening that failed is not
/// tried again within `Link::kPause`. Calls are pipelined, and a broker answers in order: a call
/// whose patience is over while it is under way therefore costs the connection, and those beside it
/// end with kDown.
///
/// Every call ends exactly once: with its answer, with its patience (kTimedOut), or with the
/// connection's end. Destroying the channel ends what is open with kDown, before it returns. Inside
/// a callback the channel may be called, or destroyed.
/// Thread: the reactor's, all of it.
class Channel {
public:
    /// For SCRAM-SHA-512, with which each connection then begins.
    struct Credentials {
        std::string user;
        std::string password;
    };
    struct Options {
        net::Reactor* reactor = nullptr;
        /// Runs getaddrinfo, which blocks; not asked for a host that is an address. What it runs
        /// must have ended when the reactor is destroyed.
        base::Executor* resolver = nullptr;
        std::string host = {};
        std::uint16_t port = 0;
        std::string client_id = {};
        std::optional<Credentials> credentials = {};
        std::uint32_t frame_max_bytes = 100 << 20;  ///< of an answer
        /// From the first look at the name until the connection can take calls.
        std::chrono::milliseconds connect_timeout = std::chrono::seconds(10);
    };
    /// The answer, which borrows from its frame: valid in the callback only.
    template <class Request>
    using Done = std::move_only_function<void(Result<const typename Request::Response*>)>;
    /// `up`: the connection takes calls now, and the error means nothing. Otherwise it ended, or
    /// could not be opened, for the reason given: one of all but kMalformed's second meaning.
    using Changed = std::move_only_function<void(bool up, const Error& why)>;

    explicit Channel(Options options);
    ~Channel();
    Channel(const Channel&) = delete;
    Channel& operator=(const Channel&) = delete;

    /// `request` is encoded before this returns. One that cannot be, in `version`, ends at once
    /// with kMalformed; otherwise `done` is called later.
    template <class Request>
    void call(const Request& request, std::int16_t version, std::chrono::milliseconds patience,
              Done<Request> done);

    /// One listener. A hint that comes without a call: a peer that closes is told at once. Told
    /// before the calls that end with the connection.
    void on_change(Changed changed);

private:
    friend class Link;
    /// Takes an answer's body or the reason why there is none. The result is the decoder's: an
    /// answer that does not decode ends the connection.
    using Finish = std::move_only_function<wire::Result<void>(Result<wire::Reader>)>;

    [[nodiscard]] std::int32_t next_correlation_id();
    [[nodiscard]] wire::String client_id() const;
    void submit(std::int32_t correlation_id, std::int16_t response_header, wire::Output frame,
                std::chrono::milliseconds patience, Finish finish);

    std::shared_ptr<Link> link_;
};

template <class Request>
void Channel::call(const Request& request, std::int16_t version, std::chrono::milliseconds patience,
                   Done<Request> done) {
    const std::int32_t id = next_correlation_id();
    auto frame = wire::encode_request(request, version, id, client_id());
    if (!frame) return done(fail(ErrorCode::kMalformed, frame.error().context));
    submit(id, wire::api(Request::kKey).response_header(version), std::move(*frame), patience,
           [done = std::move(done), version](Result<wire::Reader> body) mutable {
               if (!body) {
                   done(std::unexpected(std::move(body).error()));
                   return wire::Result<void>();
               }
               auto response = wire::decode<typename Request::Response>(*body, version);
               if (!response) {
                   done(fail(ErrorCode::kMalformed, response.error().context));
                   return wire::Result<void>(std::unexpected(std::move(response).error()));
               }
               done(&*response);
               return wire::Result<void>();
           });
}

}  // namespace kaas::client
