#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <functional>
#include <memory>
#include <unordered_map>
#include <utility>

namespace kaas::catalog {

/// A hash map whose copies share what they have in common: a copy costs a fixed number of pointers,
/// a change to a copy clones one shard. So a new image of 100,000 topics costs microseconds, not a
/// copy. Thread: a map that is no longer edited may be read from any thread.
template <class Key, class Value, class Hash = std::hash<Key>>
class ShardedMap {
public:
    ShardedMap() = default;
    ShardedMap(const ShardedMap& other) : shards_(other.shards_), size_(other.size_) {}
    ShardedMap& operator=(const ShardedMap&) = delete;

    [[nodiscard]] std::size_t size() const { return size_; }

    [[nodiscard]] const Value* find(const Key& key) const {
        const auto& shard = shards_[index(key)];
        if (!shard) return nullptr;
        auto found = shard->find(key);
        return found == shard->end() ? nullptr : &found->second;
    }

    /// Adds, or replaces key and value both: a key may be a view into its value.
    void put(const Key& key, Value value) {
        auto& shard = edit(index(key));
        size_ -= shard.erase(key);
        shard.emplace(key, std::move(value));
        ++size_;
    }
    void erase(const Key& key) {
        if (find(key) != nullptr) size_ -= edit(index(key)).erase(key);
    }

    /// Calls `visit(key, value)` for each entry, in no order.
    template <class Visit>
    void for_each(Visit&& visit) const {
        for (const auto& shard : shards_) {
            if (!shard) continue;
            for (const auto& [key, value] : *shard) visit(key, value);
        }
    }

    /// Calls `visit(before, now)` for each key whose value differs from `older`'s; a null pointer
    /// says that there was, or is, none. Costs little where both share.
    template <class Visit>
    void for_each_difference(const ShardedMap& older, Visit&& visit) const {
        for (std::size_t at = 0; at < kShards; ++at) {
            const auto& mine = shards_[at];
            const auto& theirs = older.shards_[at];
            if (mine == theirs) continue;
            const Shard none;
            const auto& now = mine ? *mine : none;
            const auto& before = theirs ? *theirs : none;
            for (const auto& [key, value] : now) {
                auto old = before.find(key);
                if (old == before.end()) {
                    visit(static_cast<const Value*>(nullptr), &value);
                } else if (!(old->second == value)) {
                    visit(&old->second, &value);
                }
            }
            for (const auto& [key, value] : before) {
                if (!now.contains(key)) visit(&value, static_cast<const Value*>(nullptr));
            }
        }
    }

private:
    static constexpr std::size_t kShards =
        256;  // 100,000 topics: 400 entries to clone for one change
    using Shard = std::unordered_map<Key, Value, Hash>;

    static std::size_t index(const Key& key) {
        // Mixed, because the shard's own table takes the low bits of the same hash.
        return (Hash{}(key) * 0x9E3779B97F4A7C15U) >> 56;
    }
    Shard& edit(std::size_t at) {
        auto& shard = shards_[at];
        if (!own_[at]) {
            shard = shard ? std::make_shared<Shard>(*shard) : std::make_shared<Shard>();
            own_[at] = true;
        }
        return *shard;
    }

    std::array<std::shared_ptr<Shard>, kShards> shards_;
    std::bitset<kShards> own_;  // shards that no copy shares; a copy starts with none
    std::size_t size_ = 0;
};

}  // namespace kaas::catalog
