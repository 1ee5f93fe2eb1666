#include "broker/handlers/alter_replica_log_dirs.h"

#include "base/ids.h"
#include "base/uuid.h"
#include "catalog/image.h"
#include "cluster/node.h"
#include "cluster/partition_table.h"
#include "storage/room.h"
#include "storage/volume.h"
#include "wire/error_code.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
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

/// What one request knows of the broker's directories.
class Targets {
public:
    explicit Targets(cluster::Node& node) : node_(node), dirs_(node.log_dirs()) {
        for (const auto& one : node.partitions().stored()) {
            if (!one.is_future) stored_[{one.topic, one.partition.value()}] = one;
        }
    }

    /// Apache `ReplicaManager.alterReplicaLogDirs`: the directory is looked at before the
    /// partition, and a partition's new log is made there before the answer.
    ErrorCode move(std::string_view path, std::string_view topic, std::int32_t partition) {
        auto dir = std::ranges::find(dirs_, path, &cluster::Node::LogDirState::path);
        if (dir == dirs_.end()) return ErrorCode::kLogDirNotFound;
        if (dir->cordoned) return ErrorCode::kInvalidReplicaAssignment;
        if (dir->volume == nullptr) return ErrorCode::kKafkaStorageError;
        const auto image = node_.partitions().image();
        const auto* known = image->topic(topic);
        const base::PartitionId index(partition);
        if (known == nullptr || known->partition(index) == nullptr)
            return ErrorCode::kUnknownTopicOrPartition;
        if (!has_room(*dir, topic, partition)) return ErrorCode::kKafkaStorageError;
        return to_wire(node_.partitions().move({known->id, index}, dir->name));
    }

private:
    /// What would fail at its first byte, or cannot end well, is not begun.
    bool has_room(const cluster::Node::LogDirState& dir, std::string_view topic,
                  std::int32_t partition) {
        const auto stored = stored_.find({std::string(topic), partition});
        if (stored == stored_.end() || stored->second.volume == dir.name) return true;
        auto& takes = takes_writes_[dir.name];
        if (!takes) {
            // Others may ask at the same time.
            const auto trial = "kaas.probe." + base::Uuid::random().to_string();
            takes = storage::probe_writes(*dir.volume, trial).has_value();
        }
        const auto space = dir.volume->space();
        return *takes && (!space || space->usable_bytes >=
                                        stored->second.bytes + storage::Room::reserve_of(*space));
    }

    cluster::Node& node_;
    const LogDirs dirs_;
    std::map<std::pair<std::string, std::int32_t>, cluster::PartitionTable::Stored> stored_;
    std::map<std::string, std::optional<bool>> takes_writes_;  ///< by volume, once asked
};

}  // namespace

void alter_replica_log_dirs(CallPtr call, wire::AlterReplicaLogDirsRequest request) {
    // A partition that is named twice goes where it is named last.
    std::map<std::string, std::map<std::int32_t, std::string>> wanted;
    for (const auto& dir : request.dirs) {
        for (const auto& topic : dir.topics) {
            for (auto partition : topic.partitions)
                wanted[topic.name.str()][partition] = dir.path.str();
        }
    }
    auto& pool = call->services().io_pool;
    pool.post([call = std::move(call), wanted = std::move(wanted)]() mutable {
        Targets targets(call->services().node);
        wire::AlterReplicaLogDirsResponse response;
        for (const auto& [topic, partitions] : wanted) {
            auto& out = response.results.emplace_back();
            out.topic_name = topic;
            for (const auto& [partition, path] : partitions) {
                auto& answer = out.partitions.emplace_back();
                answer.partition_index = partition;
                answer.error_code = targets.move(path, topic, partition);
            }
        }
        auto& home = call->home();
        home.post([call = std::move(call), wanted = std::move(wanted),
                   response = std::move(response)] { call->answer(response); });
    });
}

}  // namespace kaas::broker
