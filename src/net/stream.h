#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

namespace kaas::net {

/// What one call on a stream did: `bytes` > 0 were moved, or 0 is the peer's end, or `error` is an
/// errno; EAGAIN means to wait for the socket's next event.
struct IoResult {
    std::size_t bytes = 0;
    int error = 0;

    [[nodiscard]] bool blocked() const;
    [[nodiscard]] bool failed() const { return error != 0 && !blocked(); }
};

/// The bytes of one connection over its non-blocking socket, which the connection owns. TLS stands
/// behind this seam; for plain text the virtual call is all that it costs. Thread: the connection's
/// reactor.
class Stream {
public:
    virtual ~Stream() = default;

    [[nodiscard]] virtual IoResult receive(std::span<iovec> into) = 0;
    /// `more`: further bytes follow at once, so that a partial segment can wait for them.
    [[nodiscard]] virtual IoResult send(std::span<iovec> from, bool more) = 0;
    /// True when what is written to the socket is what the peer reads, so that files may go by
    /// sendfile.
    [[nodiscard]] virtual bool is_plain() const = 0;
};

/// Makes the stream of a new connection on `socket`.
using StreamFactory = std::function<std::unique_ptr<Stream>(int socket)>;

class PlainStream final : public Stream {
public:
    explicit PlainStream(int socket) : socket_(socket) {}

    [[nodiscard]] IoResult receive(std::span<iovec> into) override;
    [[nodiscard]] IoResult send(std::span<iovec> from, bool more) override;
    [[nodiscard]] bool is_plain() const override { return true; }

private:
    int socket_;
};

/// Sends a piece of a file to a plain socket until all is sent, the socket is full or the file
/// ends. `bytes` counts what was sent even if `error` is set. Thread: any.
[[nodiscard]] IoResult send_file(int socket, int file, std::uint64_t offset, std::size_t bytes);

}  // namespace kaas::net
