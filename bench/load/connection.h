#pragma once

#include "load/histogram.h"
#include "load/messages.h"
#include "load/socket.h"

#include <array>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace kaas::bench {

/// A request on its way: a shared, pre-encoded frame and a prefix of its own with the correlation
/// id.
struct InFlight {
    const std::string* frame = nullptr;
    int64_t started_ns = 0;
    int64_t cookie = 0;  // the workload's own
    int32_t correlation_id = 0;
    std::array<char, kFramePrefix> prefix{};
};

/// What a workload made of the bytes of an answer that have come so far.
struct Parsed {
    enum class Kind : uint8_t {
        kMore,  // not all there yet
        kDone,  // the answer is consumed
        kCut,   // `length` bytes from `at` on are records that nobody needs: drop them
    } kind;
    size_t at = 0;
    size_t length = 0;
};

class Connection;

struct Counters {
    uint64_t requests = 0;
    uint64_t bytes = 0;  // of record batches
    uint64_t records = 0;
};

/// What is asked on the connections and what the answers are worth. Thread: the one of the loop.
class Workload {
public:
    Workload() = default;
    Workload(const Workload&) = delete;
    Workload& operator=(const Workload&) = delete;
    virtual ~Workload() = default;

    /// The next request of this connection; the frame must live until its answer came.
    virtual void next(Connection& connection, InFlight& request) = 0;

    /// `answer` begins after the size field; `arrived` tells whether all of it is there (less what
    /// was cut); `cuts` counts the cuts made in this answer before. kDone counts what the answer
    /// brought.
    virtual Parsed parse(Connection& connection, const InFlight& request, std::string_view answer,
                         bool arrived, int cuts) = 0;

    /// A request is over, its answer parsed (with acks=0: it is sent).
    virtual void finished(Connection& connection, const InFlight& request, int64_t now);

    Counters counters;
    Histogram latency;
};

/// One non-blocking connection that pipelines requests and matches the answers in order.
class Connection {
public:
    /// What differs from a client's connection.
    struct Options {
        bool answered = true;      // false for acks=0: a request is over when it is sent
        bool copy_records = true;  // false: the kernel drops fetched records, for a cheaper client
    };

    Connection(int index, const Address& address, Options options);

    [[nodiscard]] int index() const { return index_; }
    [[nodiscard]] int fd() const { return socket_.get(); }
    [[nodiscard]] bool answered() const { return options_.answered; }
    [[nodiscard]] size_t in_flight() const { return open_.size(); }
    [[nodiscard]] bool wants_to_write() const { return unsent_ > 0; }

    /// Queues the workload's next request, counted from `started_ns`; flush() sends it.
    void issue(Workload& workload, int64_t started_ns);

    /// Sends what is queued as far as the socket takes it. Returns how many requests are over
    /// thereby: none, unless nothing is answered (acks=0).
    size_t flush(Workload& workload);

    /// Says that no more comes and waits until the broker has closed too, so has seen everything;
    /// for connections without answers.
    void finish() const;

    /// Reads once and consumes whole answers. Returns how many.
    size_t receive(Workload& workload);

private:
    void finish_front(Workload& workload);
    bool fill();
    bool consume(Workload& workload);
    void cut(size_t at, size_t length);

    int index_;
    Options options_;
    Fd socket_;
    int32_t next_correlation_id_ = 1;

    std::deque<InFlight> open_;
    size_t unsent_ = 0;      // requests at the back of open_ not wholly sent
    size_t sent_bytes_ = 0;  // of the first of them

    std::vector<char> buffer_;
    std::vector<char> scratch_;  // where cut bytes are copied to
    size_t begin_ = 0;
    size_t end_ = 0;
    size_t dropping_ = 0;   // bytes still in the socket that belong to a cut
    size_t cut_bytes_ = 0;  // of the answer at begin_
    int cuts_ = 0;
};

}  // namespace kaas::bench
