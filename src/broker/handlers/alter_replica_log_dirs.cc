#include "broker/handlers/alter_replica_log_dirs.h"

#include "base/ids.h"
#include "catalog/image.h"
#include "cluster/node.h"
#include "cluster/partition_table.h"
#include "wire/error_code.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

namespace kaas::broker {
namespace {

using wire::ErrorCode;
using LogDirs = std::vector<cluster::Node::LogDirState>;

ErrorCode to_wire(cluster::PartitionTable::Move outcome) {
    switch (outcome) {
        case cluster::PartitionTable::Move::kBegun: return ErrorCode::kNone;
        case cluster::PartitionTable::Move::kNotHere: return ErrorCode::kReplicaNotAvailable;
        case cluster::PartitionTable::Move::kOffline: return ErrorCode::kKafkaStorageError;
    }
    return ErrorCode::kUnknownServerError;
}

/// Apache `ReplicaManager.alterReplicaLogDirs`: the directory is looked at before the partition.
ErrorCode move(const Call& call, const LogDirs& dirs, std::string_view path, std::string_view topic,
               std::int32_t partition) {
    auto dir = std::ranges::find(dirs, path, &cluster::Node::LogDirState::path);
    if (dir == dirs.end()) return ErrorCode::kLogDirNotFound;
    if (dir->cordoned) return ErrorCode::kInvalidReplicaAssignment;
    if (dir->volume == nullptr) return ErrorCode::kKafkaStorageError;
    const auto* known = call.state().partitions.image().topic(topic);
    const base::PartitionId index(partition);
    if (known == nullptr || known->partition(index) == nullptr)
        return ErrorCode::kUnknownTopicOrPartition;
    return to_wire(call.services().node.partitions().move({known->id, index}, dir->name));
}

}  // namespace

wire::AlterReplicaLogDirsResponse alter_replica_log_dirs(
    const Call& call, const wire::AlterReplicaLogDirsRequest& request) {
    // A partition that is named twice goes where it is named last.
    std::map<std::string_view, std::map<std::int32_t, std::string_view>> wanted;
    for (const auto& dir : request.dirs) {
        for (const auto& topic : dir.topics) {
            for (auto partition : topic.partitions) wanted[topic.name][partition] = dir.path;
        }
    }
    const auto dirs = call.services().node.log_dirs();
    wire::AlterReplicaLogDirsResponse response;
    for (const auto& [topic, partitions] : wanted) {
        auto& out = response.results.emplace_back();
        out.topic_name = topic;
        for (const auto& [partition, path] : partitions) {
            auto& answer = out.partitions.emplace_back();
            answer.partition_index = partition;
            answer.error_code = move(call, dirs, path, topic, partition);
        }
    }
    return response;
}

}  // namespace kaas::broker
