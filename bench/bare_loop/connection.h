#pragma once

#include "bare_loop/log_file.h"
#include "common/fd.h"

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace kaas::bench {

/// A whole request frame, without its size field, inside the buffer that the recv filled.
struct Frame {
    Buffer owner;
    char* data;
    size_t size;
};

/// A piece of an answer: bytes, or a range of a file.
struct Piece {
    std::string bytes;
    std::shared_ptr<LogFile> file;
    off_t position = 0;
    size_t size = 0;
};

/// One accepted connection: frames in, pieces out. Nothing of a frame is copied, unless it spans
/// two buffers. Thread: the network thread.
class BareConnection {
public:
    BareConnection(uint64_t id, Fd socket);

    [[nodiscard]] uint64_t id() const { return id_; }
    [[nodiscard]] int fd() const { return socket_.get(); }
    [[nodiscard]] bool wants_to_write() const { return !out_.empty(); }

    /// One recv; calls `take` for each whole frame. False once the peer is gone.
    bool receive(const std::function<void(Frame)>& take);

    void queue(Piece piece) { out_.push_back(std::move(piece)); }
    /// Sends what the socket takes. False once the peer is gone.
    bool flush();

    bool watched_for_room = false;  // the server's: whether EPOLLOUT is on

private:
    void make_room();
    ssize_t send_bytes();

    uint64_t id_;
    Fd socket_;
    Buffer buffer_;
    size_t capacity_ = 0;
    size_t begin_ = 0;
    size_t end_ = 0;
    std::deque<Piece> out_;
};

}  // namespace kaas::bench
