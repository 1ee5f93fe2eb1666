#include "base/clock.h"
#include "base/ids.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/result.h"
#include "catalog/image.h"
#include "catalog/model.h"
#include "cluster/hosted_partition.h"
#include "cluster/partition_table.h"
#include "cluster/partition_table_impl.h"
#include "storage/error.h"
#include "storage/log_dir.h"
#include "storage/partition_log.h"
#include "storage/segment.h"
#include "storage/segment_move.h"

#include <boost/container/flat_set.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

/// Moves of partitions from one volume of this broker to another.
namespace kaas::cluster {

PartitionTable::Move PartitionTable::Impl::move(const base::TopicPartition& id,
                                                const std::string& volume) {
    {
        base::MutexLock lock(mutex_);
        auto local = topics_.find(id.topic);
        const auto at = static_cast<std::size_t>(id.partition.value());
        if (local == topics_.end() || at >= local->second.partitions.size()) return Move::kNotHere;
        const auto& partition = local->second.partitions[at];
        if (!partition) return Move::kNotHere;
        if (partition->tenancy().state() == Hosting::kOffline) return Move::kOffline;
        if (!partition->log() || closing_) return Move::kNotHere;
        if (partition->moving && partition->moving->handed_over) return Move::kBegun;
        if (partition->tenancy().tenure().volume == volume) {
            partition->moving.reset();
            return Move::kBegun;
        }
        if (partition->moving && partition->moving->volume == volume) return Move::kBegun;
        partition->moving =
            std::make_unique<HostedPartition::Moving>(HostedPartition::Moving{.volume = volume});
        start_carrying(partition);
    }
    flush();
    return Move::kBegun;
}

void PartitionTable::Impl::start_carrying(const HostedPartitionPtr& partition) {
    // Once it is handed over, its end is the old log's closing, which tells the controller.
    const bool handed_over = partition->moving && partition->moving->handed_over;
    if (closing_ || handed_over || std::exchange(partition->copying, true)) return;
    jobs_->add([self = shared_from_this(), partition] { self->carry(partition); });
}

bool PartitionTable::Impl::is_carried(const HostedPartition& partition, const storage::LogPtr& log,
                                      const std::string& volume) const {
    return !closing_ && partition.moving && partition.moving->volume == volume &&
           partition.log() == log && partition.tenancy().still_wanted();
}

/// The job of a move: removes what earlier ones have left, copies, hands over; begins again when
/// another volume was asked for meanwhile.
void PartitionTable::Impl::carry(const HostedPartitionPtr& partition) {
    leave_old_volumes(partition);
    while (true) {
        std::string volume;
        storage::LogPtr log;
        {
            base::MutexLock lock(mutex_);
            if (!partition->moving || partition->moving->handed_over || closing_ ||
                !partition->log() || !partition->tenancy().still_wanted()) {
                partition->copying = false;
                if (partition->moving && !partition->moving->handed_over) partition->moving.reset();
                break;
            }
            volume = partition->moving->volume;
            log = partition->log();
            partition->left_volumes.erase(volume);
        }
        auto copied = copy(partition, log, volume);
        if (copied && *copied && hand_over(partition, log, volume)) break;
        if (!copied) {
            base::log::warn("cluster", "{}: not moved to volume '{}': {}", partition->directory(),
                            volume, copied.error().context);
            base::MutexLock lock(mutex_);
            if (partition->moving && partition->moving->volume == volume) partition->moving.reset();
        }
        if (remove_copy(*partition, volume)) continue;
        base::MutexLock lock(mutex_);
        partition->left_volumes.insert(volume);
    }
    flush();
}

/// False: not wanted any more.
storage::Result<bool> PartitionTable::Impl::copy(const HostedPartitionPtr& partition,
                                                 const storage::LogPtr& log,
                                                 const std::string& volume) {
    const auto all = places();
    const auto to = all->find(volume);
    if (to == all->end()) return storage::fail(storage::ErrorCode::kIo, "the volume is gone");
    return storage::copy_log(*log, *to->second.volume, [&](std::uint64_t bytes, base::Offset end) {
        base::MutexLock lock(mutex_);
        if (!is_carried(*partition, log, volume)) return false;
        partition->moving->bytes = std::max(partition->moving->bytes, bytes);
        partition->moving->end = std::max(partition->moving->end, end);
        return true;
    });
}

/// False: not wanted any more, and the job goes on.
bool PartitionTable::Impl::hand_over(const HostedPartitionPtr& partition,
                                     const storage::LogPtr& log, const std::string& volume) {
    base::MutexLock lock(mutex_);
    if (!is_carried(*partition, log, volume)) return false;
    partition->copying = false;
    partition->moving->handed_over = true;
    partition->tenancy().give_back();
    go_on(partition);
    return true;
}

bool PartitionTable::Impl::remove_copy(const HostedPartition& partition,
                                       const std::string& volume) const {
    const auto all = places();
    const auto place = all->find(volume);
    if (place == all->end()) return false;
    auto& from = *place->second.volume;
    const storage::PartitionPaths paths{partition.directory()};
    auto removed = storage::remove_partition(from, paths);
    if (removed && !topic_needs(partition.id().topic, volume)) {
        removed = storage::remove_empty_topic(from, paths);
    }
    if (removed) return true;
    base::log::warn("cluster", "{}: what a move has left on volume '{}' stays for now: {}",
                    partition.directory(), volume, removed.error().context);
    return false;
}

bool PartitionTable::Impl::topic_needs(const base::TopicId& topic,
                                       const std::string& volume) const {
    base::MutexLock lock(mutex_);
    const auto local = topics_.find(topic);
    return local != topics_.end() &&
           std::ranges::any_of(local->second.partitions, [&](const HostedPartitionPtr& partition) {
               return partition && partition->needs(volume);
           });
}

/// The newest picture is on the volume of this epoch and names nothing on any other. True when
/// there are others to leave, and the caller is the one whose job it is.
bool PartitionTable::Impl::note_left_volumes(HostedPartition& partition, const Tenure& tenure) {
    base::MutexLock lock(mutex_);
    for (const auto& step : tenure.walk) {
        if (places_->contains(step.volume)) partition.left_volumes.insert(step.volume);
    }
    partition.left_volumes.erase(tenure.volume);
    return !partition.left_volumes.empty() && !std::exchange(partition.copying, true);
}

/// What does not go now is tried again at the next tick. Not under the feet of an earlier log: a
/// compaction of it may still write.
void PartitionTable::Impl::leave_old_volumes(const HostedPartitionPtr& partition) {
    boost::container::flat_set<std::string> volumes;
    {
        base::MutexLock lock(mutex_);
        if (!partition->earlier_at_rest()) return;
        volumes = partition->left_volumes;
    }
    for (const auto& volume : volumes) {
        const auto all = places();
        const auto place = all->find(volume);
        if (place == all->end() || !place->second.logs->session().confirm()) continue;
        if (!remove_copy(*partition, volume)) continue;
        base::log::info("cluster", "{} has moved away from volume '{}'", partition->directory(),
                        volume);
        base::MutexLock lock(mutex_);
        partition->left_volumes.erase(volume);
    }
}

std::vector<PartitionTable::Stored> PartitionTable::Impl::stored() const {
    std::vector<Stored> all;
    base::MutexLock lock(mutex_);
    const auto image = views_.get()->image;
    for (const auto& [id, local] : topics_) {
        const auto* topic = image->topic(id);
        if (topic == nullptr) continue;
        for (const auto& partition : local.partitions) {
            if (!partition || !partition->log()) continue;
            const auto view = partition->log()->view();
            Stored one{.topic = topic->name,
                       .partition = partition->id().partition,
                       .volume = partition->tenancy().tenure().volume,
                       .bytes = view.bytes()};
            all.push_back(one);
            if (!partition->moving) continue;
            one.volume = partition->moving->volume;
            one.bytes = partition->moving->bytes;
            one.lag = view.high_watermark.value() - partition->moving->end.value();
            one.is_future = true;
            all.push_back(std::move(one));
        }
    }
    return all;
}

}  // namespace kaas::cluster
