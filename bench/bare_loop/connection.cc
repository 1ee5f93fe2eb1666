#include "bare_loop/connection.h"

#include "common/bytes.h"
#include "common/fd.h"

#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>

namespace kaas::bench {
namespace {

constexpr size_t kSlab = 256 << 10;
/// With less room than this left, a recv is not worth it.
constexpr size_t kLeastRoom = 16 << 10;
constexpr size_t kSizeField = 4;

}  // namespace

BareConnection::BareConnection(uint64_t id, Fd socket) : id_(id), socket_(std::move(socket)) {}

/// Buffers are never reused: batches in them may be on their way to the file.
void BareConnection::make_room() {
    const std::string_view begun(buffer_.get() + begin_, end_ - begin_);
    const auto frame =
        begun.size() < kSizeField ? 0 : kSizeField + static_cast<size_t>(Reader(begun).i32());
    const bool frame_fits = begin_ + frame <= capacity_;
    if (capacity_ - end_ >= kLeastRoom && frame_fits) return;
    if (frame > 0 && frame_fits && capacity_ > end_) return;
    // A large frame gets a buffer of its own size, as it leaves no room for a neighbour anyway.
    const auto capacity = std::max(kSlab, frame);
    auto fresh = std::make_shared_for_overwrite<char[]>(capacity);
    std::memcpy(fresh.get(), begun.data(), begun.size());
    buffer_ = std::move(fresh);
    capacity_ = capacity;
    begin_ = 0;
    end_ = begun.size();
}

bool BareConnection::receive(const std::function<void(Frame)>& take) {
    make_room();
    const auto got = recv(socket_.get(), buffer_.get() + end_, capacity_ - end_, 0);
    if (got <= 0) return got < 0 && (errno == EAGAIN || errno == EINTR);
    end_ += static_cast<size_t>(got);
    while (end_ - begin_ >= kSizeField) {
        const auto size = static_cast<size_t>(Reader({buffer_.get() + begin_, kSizeField}).i32());
        if (end_ - begin_ < kSizeField + size) break;
        take({buffer_, buffer_.get() + begin_ + kSizeField, size});
        begin_ += kSizeField + size;
    }
    return true;
}

ssize_t BareConnection::send_bytes() {
    std::array<iovec, 64> pieces{};
    size_t count = 0;
    for (auto piece = out_.begin(); piece != out_.end() && count < pieces.size() && !piece->file;
         ++piece) {
        const auto sent = static_cast<size_t>(piece->position);
        pieces[count++] = {piece->bytes.data() + sent, piece->bytes.size() - sent};
    }
    msghdr message{};
    message.msg_iov = pieces.data();
    message.msg_iovlen = count;
    const bool more = count < out_.size();
    return sendmsg(socket_.get(), &message, MSG_NOSIGNAL | (more ? MSG_MORE : 0));
}

bool BareConnection::flush() {
    while (!out_.empty()) {
        auto& front = out_.front();
        if (front.file) {
            const auto sent =
                sendfile(socket_.get(), front.file->fd(), &front.position, front.size);
            if (sent <= 0) return sent < 0 && errno == EAGAIN;
            front.size -= static_cast<size_t>(sent);
            if (front.size == 0) out_.pop_front();
            continue;
        }
        const auto sent = send_bytes();
        if (sent < 0) return errno == EAGAIN;
        for (auto left = static_cast<size_t>(sent); !out_.empty() && !out_.front().file;) {
            auto& piece = out_.front();
            const auto unsent = piece.bytes.size() - static_cast<size_t>(piece.position);
            if (left < unsent) {
                piece.position += static_cast<off_t>(left);
                break;
            }
            left -= unsent;
            out_.pop_front();
        }
    }
    return true;
}

}  // namespace kaas::bench
