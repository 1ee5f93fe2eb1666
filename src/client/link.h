#pragma once

#include "base/bytes.h"
#include "base/clock.h"
#include "base/unique_fd.h"
#include "client/addresses.h"
#include "client/channel.h"
#include "client/error.h"
#include "net/frame_memory.h"
#include "net/frame_reader.h"
#include "net/reactor.h"
#include "net/stream.h"
#include "security/error.h"
#include "security/scram.h"
#include "wire/messages/sasl_authenticate.h"
#include "wire/messages/sasl_handshake.h"
#include "wire/writer.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kaas::client {

/// What a `Channel` is behind its templates: one connection at a time, and the calls that wait for
/// it or are under way on it.
///
/// Lives on after its channel only as long as a turn of the reactor, or somebody's return into it,
/// needs. Events only note what the socket can do; `on_work` opens and reads, `on_turn_end` writes.
/// Invariant: whatever calls back looks afterwards whether the connection is still there; a new one
/// is never opened before the next round of the reactor. Thread: the reactor's.
class Link final : public net::Pollable, public std::enable_shared_from_this<Link> {
public:
    /// After an opening that failed. A peer that starts anew is met soon, and a caller without a
    /// pace of its own does not spin.
    static constexpr std::chrono::milliseconds kPause{20};

    explicit Link(Channel::Options options);
    /// Ends `link` for its channel: nothing is called back after this.
    static void end(std::shared_ptr<Link> link);

    [[nodiscard]] const Channel::Options& options() const { return options_; }
    [[nodiscard]] std::int32_t next_correlation_id();
    void on_change(Channel::Changed changed);
    void submit(std::int32_t correlation_id, std::int16_t response_header, wire::Output frame,
                std::chrono::milliseconds patience, Channel::Finish finish);

    void on_ready(std::uint32_t events) override;
    void on_work() override;
    void on_turn_end() override;

private:
    enum class State : std::uint8_t {
        kIdle,        ///< no connection, and nobody who needs one
        kBeginning,   ///< to be opened in the next round, or after the pause
        kResolving,   ///< the resolver has it
        kConnecting,  ///< `socket_` is on its way to an address
        kGreeting,    ///< connected; only our own calls, which authenticate, are under way
        kUp,
    };
    struct Call {
        explicit Call(net::Reactor& reactor) : patience(reactor) {}

        std::int32_t correlation_id = 0;
        std::int16_t response_header = 0;
        wire::Output frame;  ///< until it is sent
        std::size_t sent = 0;
        Channel::Finish finish;
        net::ReactorTimer patience;
    };
    using Calls = std::list<Call>;

    static constexpr int kFramesPerTurn = 64;
    static constexpr std::size_t kPiecesPerSend = 64;

    void touch();
    [[nodiscard]] bool is_up() const { return state_ == State::kUp; }
    [[nodiscard]] bool is_connected() const { return is_up() || state_ == State::kGreeting; }

    void begin();
    void resolved(std::uint64_t attempt, Result<std::vector<Address>> addresses);
    void connect_next();
    [[nodiscard]] int connect_to(const Address& address);
    void connected();
    void address_failed(int error);
    [[nodiscard]] bool is_connected_to_itself() const;
    void open();
    /// A call of our own, while `waiting_` waits.
    template <class Request, class Response>
    void greet(const Request& request, std::int16_t version,
               void (Link::*next)(const Response& response));
    void send_mechanism();
    void mechanism_taken(const wire::SaslHandshakeResponse& response);
    void send_token(std::string token);
    void token_answered(const wire::SaslAuthenticateResponse& response);
    void token_failed(const security::Error& error);
    void up();

    void read();
    [[nodiscard]] bool receive();
    void answered(base::MutableBytes frame);
    void write();
    void note_sent(std::size_t bytes);
    void expired(Calls::iterator call);

    void close(Error why);
    void drop_socket();
    void tell(bool up, const Error& why);
    void finish_ended();

    const Channel::Options options_;
    const std::string peer_;  ///< for messages
    net::Reactor& reactor_;
    Channel::Changed changed_;
    bool ended_ = false;  ///< the channel is gone

    State state_ = State::kIdle;
    net::ReactorTimer open_timer_;  ///< the pause before, then the time for opening
    base::Clock::Steady pause_until_;
    std::uint64_t attempt_ = 0;  ///< of opening: what the resolver says of an earlier one is late
    std::vector<Address> addresses_;
    std::size_t next_address_ = 0;
    bool all_refused_ = true;  ///< of the addresses so far
    std::string last_failure_;

    std::optional<security::ScramClient> scram_;  ///< while greeting
    bool proof_sent_ = false;                     ///< then comes the server's own

    base::UniqueFd socket_;
    std::unique_ptr<net::Stream> stream_;
    net::FrameMemory memory_;
    net::SlabSource slabs_;
    net::FrameReader reader_;
    bool touched_ = false;
    bool readable_ = false;
    bool writable_ = false;

    std::int32_t last_correlation_id_ = 0;
    Calls waiting_;                 ///< for the connection
    Calls under_way_;               ///< in the order in which they were, or will be, sent
    Calls::iterator next_to_send_;  ///< in `under_way_`
    /// Ended, but not told yet, each with its reason.
    std::list<std::pair<Error, Calls>> ending_;
};

}  // namespace kaas::client
