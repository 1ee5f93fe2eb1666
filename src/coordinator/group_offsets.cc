#include "coordinator/group_offsets.h"

#include "base/ids.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kaas::coordinator {
namespace {

template <class Value>
Value* find_in(GroupOffsets::ByTopic<Value>& topics, std::string_view topic,
               base::PartitionId partition) {
    const auto partitions = topics.find(topic);
    if (partitions == topics.end()) return nullptr;
    const auto value = partitions->second.find(partition);
    return value == partitions->second.end() ? nullptr : &value->second;
}

template <class Value>
const Value* find_in(const GroupOffsets::ByTopic<Value>& topics, std::string_view topic,
                     base::PartitionId partition) {
    return find_in(const_cast<GroupOffsets::ByTopic<Value>&>(topics), topic, partition);
}

template <class Value>
GroupOffsets::ByPartition<Value>& partitions_of(GroupOffsets::ByTopic<Value>& topics,
                                                std::string_view topic) {
    const auto place = topics.find(topic);
    return place != topics.end() ? place->second : topics[std::string(topic)];
}

template <class Value>
bool remove_from(GroupOffsets::ByTopic<Value>& topics, std::string_view topic,
                 base::PartitionId partition) {
    const auto partitions = topics.find(topic);
    if (partitions == topics.end()) return false;
    const bool removed = partitions->second.erase(partition) > 0;
    if (partitions->second.empty()) topics.erase(partitions);
    return removed;
}

}  // namespace

bool GroupOffsets::put(std::string_view topic, base::PartitionId partition, OffsetEntry entry) {
    if (!pending_.empty()) {
        if (auto* waiting = find_in(pending_, topic, partition); waiting != nullptr) {
            for (auto& older : *waiting) older.outdated = true;
        }
    }
    return partitions_of(committed_, topic).insert_or_assign(partition, std::move(entry)).second;
}

void GroupOffsets::put_pending(std::string_view topic, base::PartitionId partition,
                               Pending pending) {
    auto& waiting = partitions_of(pending_, topic)[partition];
    std::erase_if(waiting, [&](const Pending& one) { return one.producer == pending.producer; });
    waiting.push_back(std::move(pending));
}

bool GroupOffsets::remove(std::string_view topic, base::PartitionId partition) {
    remove_from(pending_, topic, partition);
    return remove_from(committed_, topic, partition);
}

std::size_t GroupOffsets::end(base::ProducerId producer, bool commit) {
    std::size_t added = 0;
    for (auto topic = pending_.begin(); topic != pending_.end();) {
        auto& partitions = topic->second;
        for (auto partition = partitions.begin(); partition != partitions.end();) {
            added +=
                end_partition(topic->first, partition->first, partition->second, producer, commit);
            partition = partition->second.empty() ? partitions.erase(partition) : ++partition;
        }
        topic = partitions.empty() ? pending_.erase(topic) : ++topic;
    }
    return added;
}

std::size_t GroupOffsets::end_partition(const std::string& topic, base::PartitionId partition,
                                        std::vector<Pending>& waiting, base::ProducerId producer,
                                        bool commit) {
    const auto mine = std::ranges::find(waiting, producer, &Pending::producer);
    if (mine == waiting.end()) return 0;
    std::size_t added = 0;
    if (commit && !mine->outdated) {
        for (auto older = waiting.begin(); older != mine; ++older) older->outdated = true;
        added = partitions_of(committed_, topic)
                        .insert_or_assign(partition, std::move(mine->entry))
                        .second
                    ? 1
                    : 0;
    }
    waiting.erase(mine);
    return added;
}

const OffsetEntry* GroupOffsets::find(std::string_view topic, base::PartitionId partition) const {
    return find_in(committed_, topic, partition);
}

bool GroupOffsets::has_pending(std::string_view topic, base::PartitionId partition) const {
    return find_in(pending_, topic, partition) != nullptr;
}

std::size_t GroupOffsets::committed_count() const {
    std::size_t count = 0;
    for (const auto& [topic, partitions] : committed_) count += partitions.size();
    return count;
}

}  // namespace kaas::coordinator
