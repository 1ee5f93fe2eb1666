#include "net/stream.h"

#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>

namespace kaas::net {
namespace {

msghdr message(std::span<iovec> pieces) {
    msghdr header{};
    header.msg_iov = pieces.data();
    header.msg_iovlen = pieces.size();
    return header;
}

/// Edge-triggered readiness makes an interrupted call one to repeat, never one to wait for.
template <class Call>
IoResult repeat_interrupted(Call&& call) {
    for (;;) {
        ssize_t bytes = call();
        if (bytes >= 0) return {.bytes = static_cast<std::size_t>(bytes)};
        if (errno != EINTR) return {.error = errno};
    }
}

}  // namespace

bool IoResult::blocked() const { return error == EAGAIN || error == EWOULDBLOCK; }

IoResult PlainStream::receive(std::span<iovec> into) {
    if (into.size() == 1) {
        return repeat_interrupted(
            [&] { return ::recv(socket_, into[0].iov_base, into[0].iov_len, 0); });
    }
    msghdr header = message(into);
    return repeat_interrupted([&] { return ::recvmsg(socket_, &header, 0); });
}

IoResult PlainStream::send(std::span<iovec> from, bool more) {
    msghdr header = message(from);
    int flags = MSG_NOSIGNAL | (more ? MSG_MORE : 0);
    return repeat_interrupted([&] { return ::sendmsg(socket_, &header, flags); });
}

IoResult send_file(int socket, int file, std::uint64_t offset, std::size_t bytes) {
    IoResult sent;
    auto at = static_cast<off_t>(offset);
    while (sent.bytes < bytes) {
        IoResult step =
            repeat_interrupted([&] { return ::sendfile(socket, file, &at, bytes - sent.bytes); });
        sent.bytes += step.bytes;
        sent.error = step.error;
        if (step.bytes == 0) break;
    }
    return sent;
}

}  // namespace kaas::net
