#include "client/link.h"

#include "base/assert.h"
#include "base/buffer.h"
#include "base/bytes.h"
#include "client/addresses.h"
#include "client/channel.h"
#include "client/error.h"
#include "net/frame_reader.h"
#include "net/reactor.h"
#include "net/stream.h"
#include "security/error.h"
#include "security/scram.h"
#include "wire/api.h"
#include "wire/error_code.h"
#include "wire/message.h"
#include "wire/messages/response_header.h"
#include "wire/messages/sasl_authenticate.h"
#include "wire/messages/sasl_handshake.h"
#include "wire/reader.h"
#include "wire/types.h"
#include "wire/writer.h"

#include <fmt/format.h>

#include <asm-generic/socket.h>
#include <netinet/in.h>  // NOLINT(misc-include-cleaner): IPPROTO_TCP
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <expected>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kaas::client {
namespace {

/// Answers are decoded one by one as they come, so one frame and one slab are all that is held.
constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max() / 2;

}  // namespace

Link::Link(Channel::Options options)
    : options_(std::move(options)),
      peer_(fmt::format("{}:{}", options_.host, options_.port)),
      reactor_(*options_.reactor),
      open_timer_(reactor_),
      memory_(kNoLimit, {}),
      slabs_(memory_),
      reader_(options_.frame_max_bytes),
      next_to_send_(under_way_.end()) {}

void Link::end(std::shared_ptr<Link> link) {
    KAAS_ASSERT(link->reactor_.on_thread());
    link->ended_ = true;
    link->close({ErrorCode::kDown, fmt::format("the channel to {} ends", link->peer_)});
    link->finish_ended();  // also what an outer `close` has begun to tell
    link->changed_ = nullptr;
    net::Reactor& reactor = link->reactor_;
    reactor.retire(std::move(link));
}

std::int32_t Link::next_correlation_id() {
    if (last_correlation_id_ == std::numeric_limits<std::int32_t>::max()) last_correlation_id_ = 0;
    return ++last_correlation_id_;
}

void Link::on_change(Channel::Changed changed) { changed_ = std::move(changed); }

void Link::submit(std::int32_t correlation_id, std::int16_t response_header, wire::Output frame,
                  std::chrono::milliseconds patience, Channel::Finish finish) {
    KAAS_ASSERT(reactor_.on_thread() && !ended_);
    Calls& calls = is_up() ? under_way_ : waiting_;
    auto call = calls.emplace(calls.end(), reactor_);
    call->correlation_id = correlation_id;
    call->response_header = response_header;
    call->frame = std::move(frame);
    call->finish = std::move(finish);
    call->patience.arm(patience, [this, call] { expired(call); });
    if (is_up()) {
        if (next_to_send_ == under_way_.end()) next_to_send_ = call;
        touch();
    } else if (state_ == State::kIdle) {
        state_ = State::kBeginning;
        if (reactor_.now() >= pause_until_) return touch();
        open_timer_.arm(std::chrono::ceil<std::chrono::milliseconds>(pause_until_ - reactor_.now()),
                        [this] { begin(); });
    }
}

void Link::touch() {
    if (touched_ || ended_) return;
    touched_ = true;
    reactor_.work_soon(shared_from_this());
}

void Link::on_ready(std::uint32_t events) {
    if ((events & ~static_cast<std::uint32_t>(EPOLLOUT)) != 0) readable_ = true;
    if ((events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) != 0) writable_ = true;
    touch();
}

void Link::on_work() {
    touched_ = false;
    if (ended_) return;
    switch (state_) {
        case State::kIdle: return;
        case State::kBeginning:
            if (!open_timer_.armed()) begin();
            return;
        case State::kResolving: return;
        case State::kConnecting:
            if (writable_) connected();
            return;
        case State::kGreeting:
        case State::kUp: return read();
    }
}

void Link::on_turn_end() {
    if (is_connected()) write();
    finish_ended();
}

// Opening.

void Link::begin() {
    state_ = State::kResolving;
    ++attempt_;
    open_timer_.arm(options_.connect_timeout, [this] {
        close({ErrorCode::kUnreachable, fmt::format("{} does not answer", peer_)});
        finish_ended();
    });
    if (auto address = numeric_address(options_.host, options_.port)) {
        return resolved(attempt_, std::vector{*address});
    }
    // Only the reactor's thread takes the link out of the weak reference, and so only it destroys
    // the link.
    options_.resolver->post([link = weak_from_this(), &reactor = reactor_, attempt = attempt_,
                             host = options_.host, port = options_.port] {
        reactor.post([link, attempt, addresses = resolve(host, port)]() mutable {
            if (auto here = link.lock()) here->resolved(attempt, std::move(addresses));
        });
    });
}

void Link::resolved(std::uint64_t attempt, Result<std::vector<Address>> addresses) {
    if (state_ != State::kResolving || attempt != attempt_) return;
    if (!addresses) {
        close(std::move(addresses).error());
        return finish_ended();
    }
    addresses_ = std::move(*addresses);
    next_address_ = 0;
    all_refused_ = true;
    last_failure_ = "the name has no address";
    connect_next();
}

void Link::connect_next() {
    state_ = State::kConnecting;
    while (next_address_ < addresses_.size()) {
        int error = connect_to(addresses_[next_address_++]);
        if (error == 0 || error == EINPROGRESS) return;  // its event comes, at once or later
        address_failed(error);
    }
    close({all_refused_ ? ErrorCode::kRefused : ErrorCode::kUnreachable,
           fmt::format("{}: {}", peer_, last_failure_)});
    finish_ended();
}

/// Gives connect's errno, or that of what had to come before.
int Link::connect_to(const Address& address) {
    socket_ = base::UniqueFd(
        ::socket(address.socket_address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!socket_) return errno;
    const int on = 1;
    // A socket without them works, only less well.
    ::setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    if (::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address.socket_address),
                  address.size) != 0 &&
        errno != EINPROGRESS) {
        return errno;
    }
    // Watched only now: a socket that does not connect yet would be told of as hung up.
    readable_ = writable_ = false;
    auto watched = reactor_.watch(socket_.get(), EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, *this);
    if (watched) return 0;
    socket_.reset();  // nobody watches it: nothing to unwatch later
    return ENOMEM;
}

void Link::address_failed(int error) {
    drop_socket();
    all_refused_ = all_refused_ && error == ECONNREFUSED;
    last_failure_ = std::strerror(error);
}

void Link::connected() {
    int error = 0;
    socklen_t size = sizeof(error);
    ::getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error == 0 && is_connected_to_itself()) error = ECONNREFUSED;
    if (error == 0) return open();
    address_failed(error);
    connect_next();
}

/// The system may give a socket the very port that it connects to, when nobody listens there: TCP
/// calls that a connection, and it would keep the peer from listening.
bool Link::is_connected_to_itself() const {
    sockaddr_storage mine{};
    sockaddr_storage theirs{};
    socklen_t mine_size = sizeof(mine);
    socklen_t theirs_size = sizeof(theirs);
    return ::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&mine), &mine_size) == 0 &&
           ::getpeername(socket_.get(), reinterpret_cast<sockaddr*>(&theirs), &theirs_size) == 0 &&
           mine_size == theirs_size && std::memcmp(&mine, &theirs, mine_size) == 0;
}

void Link::open() {
    stream_ = std::make_unique<net::PlainStream>(socket_.get());
    if (!options_.credentials) return up();
    state_ = State::kGreeting;
    touch();
    scram_.emplace(options_.credentials->user, options_.credentials->password,
                   security::scram_nonce());
    proof_sent_ = false;
    send_mechanism();
}

// Greeting: the mechanism, and two tokens (KIP-43, KIP-152). The time for opening is all the
// patience that its calls have.

template <class Request, class Response>
void Link::greet(const Request& request, std::int16_t version,
                 void (Link::*next)(const Response& response)) {
    const std::int32_t id = next_correlation_id();
    auto frame =
        wire::encode_request(request, version, id, wire::String::borrow(options_.client_id));
    KAAS_ASSERT(frame);
    auto call = under_way_.emplace(under_way_.end(), reactor_);
    call->correlation_id = id;
    call->response_header = wire::api(Request::kKey).response_header(version);
    call->frame = std::move(*frame);
    call->finish = [this, version, next](Result<wire::Reader> body) {
        if (!body) return wire::Result<void>();  // the end of the connection says all
        auto response = wire::decode<Response>(*body, version);
        if (!response) return wire::Result<void>(std::unexpected(std::move(response).error()));
        (this->*next)(*response);
        return wire::Result<void>();
    };
    if (next_to_send_ == under_way_.end()) next_to_send_ = call;
}

void Link::send_mechanism() {
    constexpr std::int16_t kVersion = 1;  // tokens in SaslAuthenticate, not bare
    greet(wire::SaslHandshakeRequest{.mechanism = security::kScramSha512}, kVersion,
          &Link::mechanism_taken);
}

void Link::mechanism_taken(const wire::SaslHandshakeResponse& response) {
    if (response.error_code == wire::ErrorCode::kNone) return send_token(scram_->first());
    close({ErrorCode::kDenied,
           fmt::format("{} does not take {}: error {}", peer_, security::kScramSha512,
                       static_cast<int>(response.error_code))});
}

void Link::send_token(std::string token) {
    constexpr std::int16_t kVersion = 2;
    greet(wire::SaslAuthenticateRequest{.auth_bytes = base::as_bytes(token)}, kVersion,
          &Link::token_answered);
}

void Link::token_answered(const wire::SaslAuthenticateResponse& response) {
    if (response.error_code != wire::ErrorCode::kNone) {
        const std::string why = response.error_message ? response.error_message->str() : "";
        return close({ErrorCode::kDenied, fmt::format("{}: error {}: {}", peer_,
                                                      static_cast<int>(response.error_code), why)});
    }
    const std::string_view token = base::as_text(response.auth_bytes.view());
    if (!std::exchange(proof_sent_, true)) {
        auto proof = scram_->answer(token);
        return proof ? send_token(std::move(*proof)) : token_failed(proof.error());
    }
    const auto trusted = scram_->finish(token);
    return trusted ? up() : token_failed(trusted.error());
}

void Link::token_failed(const security::Error& error) {
    close(
        {error.code == security::ErrorCode::kMalformed ? ErrorCode::kMalformed : ErrorCode::kDenied,
         fmt::format("{}: {}", peer_, error.context)});
}

void Link::up() {
    scram_.reset();
    state_ = State::kUp;
    open_timer_.cancel();
    under_way_.splice(under_way_.end(), waiting_);
    next_to_send_ = under_way_.begin();
    touch();
    tell(true, {ErrorCode::kDown, ""});
}

// Answers.

void Link::read() {
    base::FrameRef frame;
    for (int left = kFramesPerTurn; is_connected();) {
        switch (reader_.next(slabs_, true, frame)) {
            case net::FrameReader::Next::kFrame:
                answered(frame.bytes);
                if (--left == 0) return touch();
                break;
            case net::FrameReader::Next::kReceive:
                if (receive()) break;
                frame = {};
                // An idle connection owns no memory.
                if (under_way_.empty() && !reader_.in_frame()) slabs_.trim();
                return;
            case net::FrameReader::Next::kNoMemory:
            case net::FrameReader::Next::kTooLarge:
            case net::FrameReader::Next::kNegative:
                return close({ErrorCode::kMalformed,
                              fmt::format("an answer of {} has a length that is negative or above "
                                          "{}",
                                          peer_, options_.frame_max_bytes)});
        }
    }
}

/// False when there is nothing to read now, or ever.
bool Link::receive() {
    if (!readable_) return false;
    std::array<iovec, 2> pieces;
    net::IoResult result = stream_->receive(reader_.room(slabs_, pieces));
    if (result.blocked()) {
        readable_ = false;
        return false;
    }
    if (result.failed() || result.bytes == 0) {
        close({ErrorCode::kDown,
               fmt::format("{} closed: {}", peer_,
                           result.failed() ? std::strerror(result.error) : "end of stream")});
        return false;
    }
    reader_.received(result.bytes, slabs_);
    return true;
}

void Link::answered(base::MutableBytes frame) {
    const auto malformed = [this](const std::string& what) {
        close({ErrorCode::kMalformed, fmt::format("{}: {}", peer_, what)});
    };
    if (under_way_.empty() || under_way_.begin() == next_to_send_) {
        return malformed("an answer that nobody asked for");
    }
    Call& first = under_way_.front();
    wire::Reader in(frame);
    wire::ResponseHeader header;
    header.decode(in, first.response_header);
    if (!in.ok() || header.correlation_id != first.correlation_id) {
        return malformed(fmt::format("an answer to {} came in place of that to {}",
                                     header.correlation_id, first.correlation_id));
    }
    Calls done;
    done.splice(done.end(), under_way_, under_way_.begin());
    first.patience.cancel();
    if (auto decoded = first.finish(in); !decoded) malformed(decoded.error().context);
}

// Requests.

void Link::write() {
    while (is_connected() && writable_ && next_to_send_ != under_way_.end()) {
        std::array<iovec, kPiecesPerSend> pieces;
        std::size_t count = 0;
        std::size_t bytes = 0;
        for (auto call = next_to_send_; call != under_way_.end() && count < pieces.size(); ++call) {
            base::MutableBytes left = call->frame.bytes().subspan(call->sent);
            pieces[count++] = {.iov_base = left.data(), .iov_len = left.size()};
            bytes += left.size();
        }
        net::IoResult result = stream_->send(std::span(pieces).first(count), false);
        if (result.failed()) {
            return close({ErrorCode::kDown,
                          fmt::format("{} closed: {}", peer_, std::strerror(result.error))});
        }
        note_sent(result.bytes);
        // A short write has filled the socket; room for more is a new event (epoll(7)).
        if (result.bytes < bytes) writable_ = false;
    }
}

void Link::note_sent(std::size_t bytes) {
    while (bytes > 0) {
        Call& call = *next_to_send_;
        std::size_t taken = std::min(bytes, call.frame.bytes().size() - call.sent);
        call.sent += taken;
        bytes -= taken;
        if (call.sent < call.frame.bytes().size()) return;
        call.frame = {};
        call.sent = 0;
        ++next_to_send_;
    }
}

void Link::expired(Calls::iterator call) {
    Error why{ErrorCode::kTimedOut, fmt::format("{} has not answered in time", peer_)};
    auto& [reason, calls] = ending_.emplace_back(why, Calls());
    calls.splice(calls.end(), is_up() ? under_way_ : waiting_, call);
    // Its answer may still come, and would be taken for the next one's.
    if (is_up()) close(std::move(why));
    finish_ended();
}

// Ends.

void Link::close(Error why) {
    if (state_ == State::kIdle) return;
    if (!is_up()) pause_until_ = reactor_.now() + kPause;
    state_ = State::kIdle;
    open_timer_.cancel();
    drop_socket();
    scram_.reset();
    reader_ = net::FrameReader(options_.frame_max_bytes);
    slabs_.trim();
    addresses_.clear();
    Error told = why;
    // The others had no say in one call's patience.
    if (told.code == ErrorCode::kTimedOut) told.code = ErrorCode::kDown;
    auto& [reason, calls] = ending_.emplace_back(std::move(told), Calls());
    calls.splice(calls.end(), under_way_);
    calls.splice(calls.end(), waiting_);
    next_to_send_ = under_way_.end();
    for (Call& call : calls) call.patience.cancel();
    tell(false, why);
    // `finish_ended` tells the calls: at the end of the turn, or right after this.
}

void Link::drop_socket() {
    if (!socket_) return;
    reactor_.unwatch(socket_.get());
    stream_.reset();
    socket_.reset();
}

void Link::tell(bool up, const Error& why) {
    if (!changed_ || ended_) return;
    // On the stack: it may set another one, or end the channel and with it this one.
    Channel::Changed changed = std::move(changed_);
    changed_ = nullptr;
    changed(up, why);
    if (!changed_ && !ended_) changed_ = std::move(changed);
}

/// Each call leaves the list before it is told: what it does may bring us here again.
void Link::finish_ended() {
    while (!ending_.empty()) {
        auto& [why, calls] = ending_.front();
        if (calls.empty()) {
            ending_.pop_front();
            continue;
        }
        Calls one;
        one.splice(one.end(), calls, calls.begin());
        one.front().patience.cancel();
        // Whether it could decode is of no matter: there was nothing to decode.
        [[maybe_unused]] const auto decoded = one.front().finish(std::unexpected(why));
    }
}

}  // namespace kaas::client
