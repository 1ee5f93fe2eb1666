#pragma once

#include "base/buffer.h"
#include "base/clock.h"
#include "base/unique_fd.h"
#include "net/exchange.h"
#include "net/frame_reader.h"
#include "net/reactor.h"
#include "net/response_queue.h"
#include "net/server_metrics.h"
#include "net/stream.h"
#include "storage/file_slice.h"

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <vector>

namespace kaas::net {

class ConnectionExchange;
class Shard;
struct Listener;

/// One client's connection, on one reactor for life.
///
/// Events only note what the socket can do. `on_work` hands over the requests that may start,
/// `on_turn_end` sends what is ready. Reading stops while a request runs, while 64 answers are
/// open, while more than `kUnsentMax` bytes wait for a slow reader, and while there is no request
/// memory. Thread: the reactor's, except what the I/O pool does while the socket is lent to it.
class Connection final : public Pollable, public std::enable_shared_from_this<Connection> {
public:
    Connection(Shard& shard, const Listener& listener, base::UniqueFd socket, Peer peer);

    /// Begins to watch the socket.
    [[nodiscard]] Result<void> begin();
    void on_ready(std::uint32_t events) override;
    void on_work() override;
    void on_turn_end() override;
    /// Asks for both.
    void touch();
    /// Closes as soon as nothing is open, and starts no further request.
    void drain();
    /// Tells the handler, and drops all answers. The connection leaves its shard, at once or when
    /// the I/O pool gives the socket back.
    void close(CloseReason reason);
    /// There may be request memory now.
    void memory_freed();

    [[nodiscard]] Peer& peer() { return peer_; }
    [[nodiscard]] const Listener& listener() const { return listener_; }
    [[nodiscard]] Reactor& reactor() { return reactor_; }
    [[nodiscard]] base::Clock::Steady last_active() const { return last_active_; }
    /// True when a handler owes an answer: such a connection is not idle.
    [[nodiscard]] bool owes_answer() const { return answers_.unanswered() > 0; }

private:
    friend class ConnectionExchange;
    friend class Shard;

    /// Apache has no such bound: it answers one request at a time.
    static constexpr std::size_t kOpenMax = 64;
    static constexpr std::size_t kUnsentMax = 256 << 10;
    /// What one turn does for one connection before others have theirs.
    static constexpr int kFramesPerTurn = 64;
    static constexpr std::size_t kSentPerTurn = 4 << 20;
    /// How much of a file one look at the page cache covers, and one system call sends.
    static constexpr std::size_t kFileStep = 1 << 20;
    /// Smaller slices share a packet with the text around them (TCP_CORK); holding back the end of
    /// a larger one only delays its reader, and costs a third more (bench, fetch of 1 MB).
    static constexpr std::size_t kCorkBelow = 8 << 10;
    static constexpr std::size_t kCopyStep = 256 << 10;
    static constexpr std::size_t kPiecesPerSend = 64;

    void release();
    void note_active();
    void end_if_done();

    [[nodiscard]] bool may_start() const;
    void serve();
    void end_after_answers(CloseReason reason);
    [[nodiscard]] bool receive();
    void start(base::FrameRef frame);

    void flush();
    void send_text();
    void send_slice();
    void send_slice_by_file(const storage::FileSlice& slice);
    void send_slice_by_pool(const storage::FileSlice& slice);
    void sent_by_pool(IoResult result, std::uint64_t asked);
    void send_slice_by_copy(const storage::FileSlice& slice);
    void staged_by_pool(std::vector<std::byte> bytes);
    void send_staged();
    void lend();
    [[nodiscard]] bool take_back(bool writable);
    [[nodiscard]] bool note_sent(const IoResult& result);
    /// Of the slice that is being sent.
    void file_failed(const char* why);
    void set_cork(bool on);

    // What exchanges ask for. After `close` they only give their place back.
    void pass(const ConnectionExchange* exchange);
    void answer(const ConnectionExchange* exchange, ResponseQueue::Place place, Response response);
    void answer_last(const ConnectionExchange* exchange, ResponseQueue::Place place,
                     Response response);
    void no_answer(const ConnectionExchange* exchange, ResponseQueue::Place place);
    void close_after(const ConnectionExchange* exchange, ResponseQueue::Place place,
                     CloseReason reason);
    void abandoned(const ConnectionExchange* exchange, ResponseQueue::Place place);

    Shard& shard_;  ///< not touched after `release`: exchanges may live longer
    const Listener& listener_;
    Reactor& reactor_;
    base::UniqueFd socket_;
    std::unique_ptr<Stream> stream_;
    Peer peer_;
    std::list<std::shared_ptr<Connection>>::iterator place_;  ///< in the shard's list
    base::Clock::Steady last_active_;

    FrameReader reader_;
    ResponseQueue answers_;
    const ConnectionExchange* running_ = nullptr;  ///< the request that holds up the next one
    std::vector<std::byte> staged_;                ///< file bytes on their way through user memory
    std::size_t staged_sent_ = 0;
    std::size_t sent_this_turn_ = 0;

    bool touched_ : 1 = false;
    bool readable_ : 1 = false;  ///< epoll tells of both when the socket is registered
    bool writable_ : 1 = false;
    bool hung_up_ : 1 =
        false;  ///< the peer sends no more: read to the end, whatever a short read says
    bool broken_ : 1 = false;  ///< nobody is there to read an answer
    bool at_end_ : 1 = false;  ///< read to the end
    bool draining_ : 1 = false;
    bool closed_ : 1 = false;
    bool lent_ : 1 = false;  ///< the I/O pool sends; nothing else may
    bool corked_ : 1 = false;
    bool waiting_ : 1 = false;  ///< for request memory
    bool waited_ : 1 = false;
    CloseReason end_reason_ = CloseReason::kHandler;
};

}  // namespace kaas::net
