#pragma once

#include <cstdint>
#include <functional>
#include <unordered_map>
#include <utility>

namespace kaas::broker {

/// The fetches of one reactor that wait for data, by connection: those of a dead connection are
/// dropped, and all are answered when the broker stops, at once instead of at their `max_wait_ms`.
/// Thread: its reactor.
class ParkedFetches {
public:
    /// How a fetch stops waiting; called at most once, and taken off the list before.
    struct Waiting {
        std::function<void()> drop;
        std::function<void()> answer;  ///< with what there is
    };

    /// False once closed: nothing waits any more. One at a time per connection: a connection's next
    /// request waits for this one's answer.
    [[nodiscard]] bool open() const { return open_; }
    void add(std::uint64_t connection, Waiting waiting) {
        waiting_[connection] = std::move(waiting);
    }
    void remove(std::uint64_t connection) { waiting_.erase(connection); }
    void drop(std::uint64_t connection) {
        if (auto waiting = waiting_.extract(connection)) waiting.mapped().drop();
    }
    void close() {
        open_ = false;
        for (auto& [connection, waiting] : std::exchange(waiting_, {})) waiting.answer();
    }

private:
    std::unordered_map<std::uint64_t, Waiting> waiting_;
    bool open_ = true;
};

}  // namespace kaas::broker
