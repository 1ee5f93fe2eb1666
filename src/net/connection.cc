#include "net/connection.h"

#include "base/assert.h"
#include "base/buffer.h"
#include "base/bytes.h"
#include "base/executor.h"
#include "base/log.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "net/acceptor.h"
#include "net/error.h"
#include "net/exchange.h"
#include "net/frame_reader.h"
#include "net/reactor.h"
#include "net/response_queue.h"
#include "net/server.h"
#include "net/server_metrics.h"
#include "net/shard.h"
#include "net/stream.h"
#include "storage/file_slice.h"
#include "storage/volume.h"

#include <netinet/in.h>  // NOLINT(misc-include-cleaner): IPPROTO_TCP
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace kaas::net {

/// The handler's side of one request. Knows nothing but its connection and its place there.
class ConnectionExchange final : public Exchange {
public:
    ConnectionExchange(std::shared_ptr<Connection> connection, base::FrameRef frame,
                       ResponseQueue::Place place)
        : connection_(std::move(connection)), frame_(std::move(frame)), place_(place) {}
    ~ConnectionExchange() override {
        if (finished_) return;
        if (connection_->reactor_.on_thread()) {
            connection_->abandoned(this, place_);
        } else {
            connection_->reactor_.post([connection = connection_, place = place_, self = this] {
                connection->abandoned(self, place);
            });
        }
    }

    [[nodiscard]] const base::FrameRef& frame() const override { return frame_; }
    [[nodiscard]] Peer& peer() override { return connection_->peer_; }
    [[nodiscard]] Reactor& reactor() override { return connection_->reactor_; }

    void pass() override { connection_->pass(this); }
    void respond(Response response) override {
        finish();
        connection_->answer(this, place_, std::move(response));
    }
    void respond_last(Response response, const std::string& why) override {
        finish();
        log_close(why);
        connection_->answer_last(this, place_, std::move(response));
    }
    void no_response() override {
        finish();
        connection_->no_answer(this, place_);
    }
    void close(const std::string& why) override {
        finish();
        log_close(why);
        connection_->close_after(this, place_, CloseReason::kHandler);
    }

private:
    void log_close(const std::string& why) {
        connection_->shard_.log().closed_by_handler.log(base::log::Level::kInfo, "net",
                                                        "closing the connection of {}: {}",
                                                        to_string(connection_->peer_), why);
    }
    void finish() {
        KAAS_ASSERT(!finished_ && connection_->reactor_.on_thread());
        finished_ = true;
    }

    std::shared_ptr<Connection> connection_;
    base::FrameRef frame_;
    ResponseQueue::Place place_;
    bool finished_ = false;
};

Connection::Connection(Shard& shard, const Listener& listener, base::UniqueFd socket, Peer peer)
    : shard_(shard),
      listener_(listener),
      reactor_(shard.reactor()),
      socket_(std::move(socket)),
      stream_(listener.options.stream ? listener.options.stream(socket_.get())
                                      : std::make_unique<PlainStream>(socket_.get())),
      peer_(std::move(peer)),
      last_active_(reactor_.now()),
      reader_(shard.options().request_max_bytes) {}

Result<void> Connection::begin() {
    // Edge-triggered and for both directions at once: nothing is ever registered again.
    KAAS_TRY(reactor_.watch(socket_.get(), EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, *this));
    return {};
}

void Connection::on_ready(std::uint32_t events) {
    if (closed_) return;
    if ((events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) readable_ = true;
    if ((events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) hung_up_ = true;
    if ((events & (EPOLLHUP | EPOLLERR)) != 0) broken_ = true;
    if ((events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) != 0) writable_ = true;
    touch();
}

void Connection::touch() {
    if (touched_ || closed_) return;
    touched_ = true;
    reactor_.work_soon(shared_from_this());
}

void Connection::on_work() {
    touched_ = false;
    if (closed_) return;
    // Requests that nobody can hear the answer of are still carried out (acks=0 and a quick close),
    // but one that is under way is not waited for.
    if (broken_ && owes_answer()) return close(CloseReason::kBroken);
    serve();
}

void Connection::on_turn_end() {
    if (closed_) return;
    sent_this_turn_ = 0;
    bool held_up = !may_start();
    flush();
    // Sending may have made room for a request that is here already.
    if (held_up && may_start()) touch();
    if (!closed_) end_if_done();
}

void Connection::end_if_done() {
    if (answers_.size() > 0 || running_ != nullptr) return;
    if (draining_) return close(CloseReason::kStopping);
    if (at_end_) return close(broken_ ? CloseReason::kBroken : CloseReason::kPeer);
}

void Connection::drain() {
    draining_ = true;
    touch();
}

void Connection::close(CloseReason reason) {
    if (closed_) return;
    closed_ = true;
    reactor_.unwatch(socket_.get());
    reader_ = FrameReader(0);
    answers_.abandon();
    running_ = nullptr;
    shard_.ended(place_, reason);
    if (lent_) {
        ::shutdown(socket_.get(),
                   SHUT_RDWR);  // the pool's next call fails; `take_back` does the rest
        shard_.active(place_);
    } else {
        release();
    }
}

/// Nothing else uses the socket or the shard any more.
void Connection::release() {
    stream_.reset();
    socket_.reset();
    staged_ = {};
    shard_.gone(place_);
}

void Connection::note_active() {
    last_active_ = reactor_.now();
    shard_.active(place_);
}

// Requests.

bool Connection::may_start() const {
    return !closed_ && !draining_ && !at_end_ && !waiting_ && running_ == nullptr &&
           answers_.size() < kOpenMax && answers_.text_bytes() <= kUnsentMax;
}

void Connection::serve() {
    base::FrameRef frame;
    for (int left = kFramesPerTurn; may_start();) {
        switch (reader_.next(shard_.slabs(), waited_, frame)) {
            case FrameReader::Next::kFrame:
                waited_ = false;
                start(std::move(frame));
                if (--left == 0) return touch();
                break;
            case FrameReader::Next::kReceive:
                if (!receive()) return;
                break;
            case FrameReader::Next::kNoMemory:
                waiting_ = true;
                return shard_.wait_for_memory(shared_from_this(), waited_);
            case FrameReader::Next::kTooLarge:
            case FrameReader::Next::kNegative:
                shard_.log().bad_lengths.log(
                    base::log::Level::kWarn, "net",
                    "a request of {} has a length that is negative or above {}", to_string(peer_),
                    shard_.options().request_max_bytes);
                return end_after_answers(CloseReason::kBadFrame);
        }
    }
}

/// Reads no more; closes when the answers so far have left.
void Connection::end_after_answers(CloseReason reason) {
    answers_.close_at(answers_.open());
    end_reason_ = reason;
    draining_ = true;
}

/// False when there is nothing to read now, or ever.
bool Connection::receive() {
    if (!readable_) return false;
    std::array<iovec, 2> pieces;
    FrameReader::Room room = reader_.room(shard_.slabs(), pieces);
    IoResult result = stream_->receive(room);
    ReactorMetrics& metrics = shard_.metrics();
    metrics.receives.add();
    if (result.blocked()) {
        readable_ = false;
        return false;
    }
    if (result.failed() || result.bytes == 0) {
        broken_ = broken_ || result.failed();
        at_end_ = true;
        return false;
    }
    std::size_t capacity = 0;
    for (const iovec& piece : room) capacity += piece.iov_len;
    // A short read has emptied the socket; what comes later is a new event (epoll(7)). An end that
    // is known to be there was that event.
    if (result.bytes < capacity && !hung_up_) readable_ = false;
    std::uint64_t moved = reader_.moved_bytes();
    reader_.received(result.bytes, shard_.slabs());
    metrics.received_bytes.add(result.bytes);
    metrics.moved_bytes.add(reader_.moved_bytes() - moved);
    note_active();
    return true;
}

void Connection::start(base::FrameRef frame) {
    shard_.metrics().frames.add();
    auto exchange =
        std::make_unique<ConnectionExchange>(shared_from_this(), std::move(frame), answers_.open());
    running_ = exchange.get();
    shard_.handler().handle(std::move(exchange));
}

void Connection::memory_freed() {
    waiting_ = false;
    waited_ = true;
    touch();
}

void Connection::pass(const ConnectionExchange* exchange) {
    KAAS_ASSERT(reactor_.on_thread());
    if (running_ != exchange) return;
    running_ = nullptr;
    touch();
}

void Connection::answer(const ConnectionExchange* exchange, ResponseQueue::Place place,
                        Response response) {
    if (closed_) return answers_.drop(place);
    answers_.answer(place, std::move(response));
    pass(exchange);
    shard_.request_ended();
    touch();
}

void Connection::answer_last(const ConnectionExchange* exchange, ResponseQueue::Place place,
                             Response response) {
    if (!closed_) end_after_answers(CloseReason::kHandler);
    answer(exchange, place, std::move(response));
}

void Connection::no_answer(const ConnectionExchange* exchange, ResponseQueue::Place place) {
    answers_.drop(place);
    if (closed_) return;
    pass(exchange);
    shard_.request_ended();
    touch();
}

void Connection::close_after(const ConnectionExchange* exchange, ResponseQueue::Place place,
                             CloseReason reason) {
    if (closed_) return answers_.drop(place);
    answers_.close_at(place);
    end_reason_ = reason;
    draining_ = true;
    pass(exchange);
    touch();
}

void Connection::abandoned(const ConnectionExchange* exchange, ResponseQueue::Place place) {
    if (!closed_) {
        shard_.log().dropped_requests.log(base::log::Level::kError, "net",
                                          "a request of {} was dropped without an answer",
                                          to_string(peer_));
    }
    close_after(exchange, place, CloseReason::kDropped);
}

// Answers.

void Connection::flush() {
    while (!closed_ && writable_ && !lent_) {
        if (sent_this_turn_ >= kSentPerTurn) return touch();
        switch (answers_.front()) {
            case ResponseQueue::Front::kText: send_text(); break;
            case ResponseQueue::Front::kSlice: send_slice(); break;
            case ResponseQueue::Front::kNothing: return set_cork(false);
            case ResponseQueue::Front::kClose: return close(end_reason_);
        }
    }
}

void Connection::send_text() {
    std::array<iovec, kPiecesPerSend> pieces;
    ResponseQueue::Gathered text = answers_.gather(pieces);
    IoResult result = stream_->send(std::span(pieces).first(text.pieces), text.more);
    shard_.metrics().sends.add();
    shard_.metrics().sent_text_bytes.add(result.bytes);
    if (!note_sent(result)) return;
    if (result.bytes < text.bytes) writable_ = false;  // full, as epoll(7) has it
    answers_.text_sent(result.bytes);
}

void Connection::send_slice() {
    if (!staged_.empty()) return send_staged();
    storage::FileSlice slice = answers_.slice();
    set_cork(slice.length < kCorkBelow && answers_.text_follows_slice());
    if (stream_->is_plain() && slice.file->has_descriptor()) {
        slice.length = std::min<std::uint64_t>(slice.length, kFileStep);
        send_slice_by_file(slice);
    } else {
        slice.length = std::min<std::uint64_t>(slice.length, kCopyStep);
        send_slice_by_copy(slice);
    }
}

void Connection::send_slice_by_file(const storage::FileSlice& slice) {
    const auto lease = slice.file->is_local() ? slice.file->descriptor_if_open() : storage::Lease();
    if (lease == nullptr || !slice.file->cached(slice.offset, slice.length)) {
        return send_slice_by_pool(slice);
    }
    IoResult result = send_file(socket_.get(), lease->get(), slice.offset, slice.length);
    shard_.metrics().sends.add();
    shard_.metrics().sent_file_bytes.add(result.bytes);
    if (!note_sent(result)) return;
    answers_.slice_sent(result.bytes);
    if (result.error == 0 && result.bytes < slice.length)
        file_failed("it ends early, or cannot be read");
}

/// The pool may wait for the disk or the network; it never waits for the socket.
void Connection::send_slice_by_pool(const storage::FileSlice& slice) {
    lend();
    shard_.io_pool().post([self = shared_from_this(), slice, socket = socket_.get()] {
        const auto lease = slice.file->descriptor();
        IoResult result;
        if (lease) result = send_file(socket, (*lease)->get(), slice.offset, slice.length);
        self->reactor_.post(
            [self, result, asked = slice.length] { self->sent_by_pool(result, asked); });
    });
}

void Connection::sent_by_pool(IoResult result, std::uint64_t asked) {
    if (!take_back(result.error != EAGAIN)) return;
    shard_.metrics().sends.add();
    shard_.metrics().sent_pool_bytes.add(result.bytes);
    bool was_writable = writable_;
    if (!note_sent(result)) return;
    // An event that came while the pool was at work may be newer than its last look.
    writable_ = was_writable;
    answers_.slice_sent(result.bytes);
    if (result.error == 0 && result.bytes < asked) file_failed("it ends early, or cannot be read");
}

/// For files without a descriptor, and for streams that change the bytes.
void Connection::send_slice_by_copy(const storage::FileSlice& slice) {
    if (slice.file->is_local() || !slice.file->has_descriptor()) {
        staged_.resize(slice.length);
        auto read = slice.file->try_read_at(slice.offset, staged_);
        if (read && *read > 0) return staged_.resize(*read);
        staged_ = {};
    }
    lend();
    shard_.io_pool().post([self = shared_from_this(), slice] {
        std::vector<std::byte> bytes(slice.length);
        auto read = slice.file->read_at(slice.offset, bytes);
        bytes.resize(read.value_or(0));
        self->reactor_.post(
            [self, bytes = std::move(bytes)]() mutable { self->staged_by_pool(std::move(bytes)); });
    });
}

void Connection::staged_by_pool(std::vector<std::byte> bytes) {
    if (!take_back(true)) return;
    staged_ = std::move(bytes);
    if (staged_.empty()) file_failed("it cannot be read");
}

void Connection::send_staged() {
    base::MutableBytes rest = base::MutableBytes(staged_).subspan(staged_sent_);
    iovec piece{.iov_base = rest.data(), .iov_len = rest.size()};
    IoResult result = stream_->send(std::span(&piece, 1), false);
    shard_.metrics().sends.add();
    shard_.metrics().sent_copied_bytes.add(result.bytes);
    if (!note_sent(result)) return;
    staged_sent_ += result.bytes;
    if (staged_sent_ == staged_.size()) {
        staged_ = {};
        staged_sent_ = 0;
    }
    answers_.slice_sent(result.bytes);
}

/// From here to `take_back` only the pool touches the socket's sending side.
void Connection::lend() {
    lent_ = true;
    writable_ = false;
}

/// False when the connection was closed in between.
bool Connection::take_back(bool writable) {
    lent_ = false;
    writable_ = writable_ || writable;
    if (closed_) {
        release();
        return false;
    }
    touch();
    return true;
}

/// False when the connection broke.
bool Connection::note_sent(const IoResult& result) {
    if (result.failed()) {
        close(CloseReason::kBroken);
        return false;
    }
    if (result.blocked()) writable_ = false;
    if (result.bytes > 0) {
        sent_this_turn_ += result.bytes;
        note_active();
    }
    return true;
}

void Connection::file_failed(const char* why) {
    const auto slice = answers_.slice();
    slice.file->doubt();
    shard_.log().failed_files.log(
        base::log::Level::kError, "net",
        "an answer to {} cannot be finished, its connection is cut: {} at {}: {}", to_string(peer_),
        slice.file->path(), slice.offset, why);
    close(CloseReason::kFile);
}

void Connection::set_cork(bool on) {
    if (corked_ == on) return;
    corked_ = on;
    int value = on ? 1 : 0;
    ::setsockopt(socket_.get(), IPPROTO_TCP, TCP_CORK, &value, sizeof(value));
}

}  // namespace kaas::net
