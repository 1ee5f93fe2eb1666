#pragma once

#include "net/exchange.h"
#include "storage/file_slice.h"

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <list>
#include <span>

namespace kaas::net {

/// The answers of one connection, in the order of its requests, and how far they have been sent.
/// Passive: knows no socket. Thread: the connection's reactor.
class ResponseQueue {
    struct Slot;

public:
    /// A request's place. Valid until `drop`, or until its answer was sent.
    using Place = std::list<Slot>::iterator;

    [[nodiscard]] Place open();
    void answer(Place place, Response response);
    /// No answer will come.
    void drop(Place place);
    /// Once the answers before it have left, `front` says kClose.
    void close_at(Place place);
    /// Forgets all answers; places that are still open stay valid.
    void abandon();

    /// Places taken: open, or with an answer that is not all sent.
    [[nodiscard]] std::size_t size() const { return slots_.size(); }
    [[nodiscard]] std::size_t unanswered() const { return unanswered_; }
    /// Bytes in memory that wait to be sent.
    [[nodiscard]] std::size_t text_bytes() const { return text_bytes_; }

    enum class Front {
        kNothing,  ///< nothing to send before another answer comes
        kText,     ///< `gather` and `text_sent` next
        kSlice,    ///< `slice` and `slice_sent` next
        kClose,
    };
    [[nodiscard]] Front front() const;

    /// Fills `pieces` with the text that can go now, of as many answers as are ready and fit.
    struct Gathered {
        std::size_t pieces = 0;  ///< filled
        std::size_t bytes = 0;
        bool more = false;  ///< a file slice, or text that did not fit, follows at once
    };
    [[nodiscard]] Gathered gather(std::span<iovec> pieces);
    void text_sent(std::size_t bytes);

    /// What is left of the file region at the front.
    [[nodiscard]] storage::FileSlice slice() const;
    void slice_sent(std::size_t bytes);
    /// True when text can go right after the slice at the front.
    [[nodiscard]] bool text_follows_slice() const;

private:
    enum class State : std::uint8_t { kOpen, kReady, kClose };
    struct Slot {
        State state = State::kOpen;
        Response response;
        std::size_t text_sent = 0;  ///< of the output's own bytes
        std::size_t splice = 0;     ///< the first that is not all sent
        std::uint64_t slice_sent = 0;

        [[nodiscard]] bool has_splice() const { return splice < response.output.splices().size(); }
        [[nodiscard]] const storage::FileSlice& slice() const;
        /// Where the text that can go before the next splice ends.
        [[nodiscard]] std::size_t text_end() const;
        [[nodiscard]] bool done() const;
    };

    void pop_done();

    std::list<Slot> slots_;
    std::size_t unanswered_ = 0;
    std::size_t text_bytes_ = 0;
};

}  // namespace kaas::net
