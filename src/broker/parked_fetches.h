#pragma once

#include <cstdint>
#include <functional>
#include <unordered_map>

namespace kaas::broker {

/// The fetches of one reactor that wait for data, by connection, so that those of a dead connection
/// can be dropped at once instead of at their `max_wait_ms`. Thread: its reactor.
class ParkedFetches {
public:
    using Drop = std::function<void()>;

    /// One at a time per connection: a connection's next request waits for this one's answer.
    void add(std::uint64_t connection, Drop drop) { drops_[connection] = std::move(drop); }
    void remove(std::uint64_t connection) { drops_.erase(connection); }
    void drop(std::uint64_t connection) {
        auto at = drops_.find(connection);
        if (at == drops_.end()) return;
        Drop drop = std::move(at->second);
        drops_.erase(at);
        drop();
    }
    [[nodiscard]] std::size_t size() const { return drops_.size(); }

private:
    std::unordered_map<std::uint64_t, Drop> drops_;
};

}  // namespace kaas::broker
