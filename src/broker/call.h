#pragma once

#include "base/clock.h"
#include "base/executor.h"
#include "broker/refusals.h"
#include "broker/services.h"
#include "cluster/admin.h"
#include "net/exchange.h"
#include "net/reactor.h"
#include "wire/message.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace kaas::broker {

class EnvelopeExchange;

/// One request on its way through its handler: the header, who asks, and the place of the answer.
///
/// What was decoded from the frame borrows from it and lives as long as the call. A call that dies
/// without an answer closes its connection.
/// Thread: the connection's reactor.
class Call {
public:
    Call(Services& services, ReactorState& state, wire::RequestHeader header,
         std::unique_ptr<net::Exchange> exchange);
    /// One that another broker has sent on, as its `attempt`.
    Call(Services& services, ReactorState& state, wire::RequestHeader header,
         std::unique_ptr<EnvelopeExchange> exchange, const cluster::Attempt& attempt);

    [[nodiscard]] Services& services() const { return services_; }
    /// What this call's reactor keeps for its handlers.
    [[nodiscard]] ReactorState& state() const { return state_; }
    [[nodiscard]] std::int16_t version() const { return header_.request_api_version; }
    [[nodiscard]] const wire::RequestHeader& header() const { return header_; }
    [[nodiscard]] net::Peer& peer() const { return exchange_->peer(); }
    [[nodiscard]] const base::FrameRef& frame() const { return exchange_->frame(); }
    [[nodiscard]] net::Reactor& reactor() const { return exchange_->reactor(); }
    /// The call's reactor: where answers of other threads come back to.
    [[nodiscard]] base::Executor& home() const { return exchange_->reactor(); }

    /// For the controller: which request this is.
    [[nodiscard]] const cluster::Attempt& attempt();
    void is_asked_again() { attempt_.again = true; }
    /// Null unless the request came in one.
    [[nodiscard]] EnvelopeExchange* envelope() const { return envelope_; }

    /// Sends the answer. A response that cannot be encoded in this version is our own bug: it is
    /// logged and the connection closed.
    template <class Response>
    void answer(const Response& response, std::vector<storage::FileSlice> slices = {}) {
        send(wire::encode_response(response, version(), header_.correlation_id), std::move(slices));
    }
    /// As `answer`, in another version than was asked (ApiVersions of an unknown version).
    template <class Response>
    void answer_in_version(const Response& response, std::int16_t version) {
        send(wire::encode_response(response, version, header_.correlation_id), {});
    }
    /// Closes the connection once this answer has left.
    template <class Response>
    void answer_last(const Response& response, const std::string& why) {
        send(wire::encode_response(response, version(), header_.correlation_id), {}, &why);
    }
    /// The answer as another broker gave it: a response's header and body.
    void answer_with(base::ByteView response);
    /// Lets the connection's next request start before this one is answered.
    void pass() { exchange_->pass(); }
    /// acks=0: nothing goes back.
    void answer_nothing() { exchange_->no_response(); }
    void close(const std::string& why) { exchange_->close(why); }
    /// Closes, as the request cannot be served at all.
    void refuse(Refusal why, const std::string& text);

private:
    /// With `last`, the reason why it is that.
    void send(wire::Result<wire::Output> output, std::vector<storage::FileSlice> slices,
              const std::string* last = nullptr);

    Services& services_;
    ReactorState& state_;
    wire::RequestHeader header_;
    std::unique_ptr<net::Exchange> exchange_;
    EnvelopeExchange* envelope_ = nullptr;
    cluster::Attempt attempt_{};
    base::Clock::Steady began_;
};

using CallPtr = std::shared_ptr<Call>;

/// Runs `work` on the I/O pool, then `then` on the call's reactor. An exception of `work`, as when
/// memory is short, costs this request its connection and nobody else anything.
void run_on_pool(CallPtr call, base::Executor::Work work, base::Executor::Work then);

/// A callback for another thread: runs `done` on the thread of `home` with what it is called with.
template <class Answer>
[[nodiscard]] std::move_only_function<void(Answer)> brought_home(
    base::Executor& home, std::move_only_function<void(Answer)> done) {
    return [&home, done = std::move(done)](Answer answer) mutable {
        home.post([done = std::move(done), answer = std::move(answer)]() mutable {
            done(std::move(answer));
        });
    };
}

}  // namespace kaas::broker
