#pragma once

#include "base/ids.h"
#include "coordinator/group_requests.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kaas::coordinator {

/// An offset that a group keeps of one partition.
struct OffsetEntry {
    base::Offset offset{};
    std::int32_t leader_epoch = kNoLeaderEpochKnown;
    std::int64_t committed_ms = 0;
    std::optional<std::int64_t> expires_ms{};  ///< asked for by the client, versions 2 to 4
    base::TopicId topic_id{};                  ///< zero: not known
    std::string metadata{};

    friend bool operator==(const OffsetEntry&, const OffsetEntry&) = default;
};

/// The offsets of one group: those that are committed, and those that wait for the end of a
/// producer's transaction. Of several for one partition the one that came last counts, whichever
/// transaction ends last (Apache compares positions in its log). Passive; owner's thread.
class GroupOffsets {
public:
    /// Waits for its transaction.
    struct Pending {
        base::ProducerId producer;
        OffsetEntry entry;
        bool outdated = false;  ///< something newer is committed: this one will not count

        friend bool operator==(const Pending&, const Pending&) = default;
    };
    template <class Value>
    using ByPartition = std::map<base::PartitionId, Value>;
    template <class Value>
    using ByTopic = std::map<std::string, ByPartition<Value>, std::less<>>;

    /// Returns whether the partition had none.
    bool put(std::string_view topic, base::PartitionId partition, OffsetEntry entry);
    void put_pending(std::string_view topic, base::PartitionId partition, Pending pending);
    /// Both the committed one and all that wait. Returns whether there was a committed one.
    bool remove(std::string_view topic, base::PartitionId partition);
    /// The producer's transaction ends. Returns how many partitions have an offset that had none.
    std::size_t end(base::ProducerId producer, bool commit);

    [[nodiscard]] const OffsetEntry* find(std::string_view topic,
                                          base::PartitionId partition) const;
    [[nodiscard]] bool has_pending(std::string_view topic, base::PartitionId partition) const;
    [[nodiscard]] const ByTopic<OffsetEntry>& committed() const { return committed_; }
    /// The oldest first.
    [[nodiscard]] const ByTopic<std::vector<Pending>>& pending() const { return pending_; }
    [[nodiscard]] bool empty() const { return committed_.empty() && pending_.empty(); }
    [[nodiscard]] std::size_t committed_count() const;

private:
    std::size_t end_partition(const std::string& topic, base::PartitionId partition,
                              std::vector<Pending>& waiting, base::ProducerId producer,
                              bool commit);

    ByTopic<OffsetEntry> committed_;
    ByTopic<std::vector<Pending>> pending_;
};

}  // namespace kaas::coordinator
