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
#include "storage/log_view.h"
#include "storage/partition_log.h"
#include "storage/recovery.h"
#include "storage/segment_move.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
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
        if (partition->state() == Hosting::kOffline) return Move::kOffline;
        if (!partition->log() || closing_) return Move::kNotHere;
        if (partition->moving && partition->moving->handed_over) return Move::kBegun;
        if (partition->tenure().volume == volume) {
            partition->moving.reset();
            return Move::kBegun;
        }
        if (partition->moving && partition->moving->volume == volume) return Move::kBegun;
        partition->moving = HostedPartition::Moving{.volume = volume};
        if (!std::exchange(partition->copying, true)) {
            jobs_.emplace_back([self = shared_from_this(), partition] { self->carry(partition); });
        }
    }
    flush();
    return Move::kBegun;
}

bool PartitionTable::Impl::is_carried(const HostedPartition& partition, const storage::LogPtr& log,
                                      const std::string& volume) const {
    return !closing_ && partition.moving && partition.moving->volume == volume &&
           partition.log() == log && partition.still_wanted();
}

/// The job of a move: copies, hands over; begins again when another volume was asked for meanwhile.
void PartitionTable::Impl::carry(const HostedPartitionPtr& partition) {
    while (true) {
        std::string volume;
        storage::LogPtr log;
        {
            base::MutexLock lock(mutex_);
            if (!partition->moving || partition->moving->handed_over || closing_ ||
                !partition->log() || !partition->still_wanted()) {
                partition->copying = false;
                partition->moving.reset();
                break;
            }
            volume = partition->moving->volume;
            log = partition->log();
        }
        auto copied = copy(partition, log, volume);
        if (copied && *copied) {
            hand_over(partition, log, volume);
            break;
        }
        remove_copy(*partition, volume);
        if (copied) continue;
        base::log::warn("cluster", "{}: not moved to volume '{}': {}", partition->directory(),
                        volume, copied.error().context);
        base::MutexLock lock(mutex_);
        if (partition->moving && partition->moving->volume == volume) partition->moving.reset();
    }
    flush();
}

/// Copies until little is left for the time in which nobody is served. False: not wanted any more.
storage::Result<bool> PartitionTable::Impl::copy(const HostedPartitionPtr& partition,
                                                 const storage::LogPtr& log,
                                                 const std::string& volume) {
    constexpr std::uint64_t kLittle = std::uint64_t{4} << 20;
    constexpr int kMostRounds = 8;
    auto& to = *options_.places.find(volume)->second.volume;
    KAAS_TRY(storage::make_topic_directory(to, partition->directory()));
    KAAS_TRY(storage::make_partition_directory(to, partition->directory()));
    std::uint64_t before = 0;
    for (int round = 0; round < kMostRounds; ++round) {
        const auto view = log->view();
        auto copied = copy_view(partition, log, volume, view);
        // A segment that has left the log meanwhile is not in the next view.
        const bool left = !copied && copied.error().code == storage::ErrorCode::kNotFound;
        if (!left && (!copied || !*copied)) return copied;
        const auto now = view.bytes();
        if (!left && now - std::min(now, before) <= kLittle) break;
        before = now;
    }
    return true;
}

storage::Result<bool> PartitionTable::Impl::copy_view(const HostedPartitionPtr& partition,
                                                      const storage::LogPtr& log,
                                                      const std::string& volume,
                                                      const storage::LogView& view) {
    auto& from = log->log_dir().volume();
    auto& to = *options_.places.find(volume)->second.volume;
    auto spans = *view.sealed;
    if (view.last.segment) spans.push_back(view.last);
    std::uint64_t bytes = 0;
    for (const auto& span : spans) {
        KAAS_TRY(storage::copy_segment(from, to, {partition->directory()}, span.facts));
        bytes += span.facts.bytes;
        base::MutexLock lock(mutex_);
        if (!is_carried(*partition, log, volume)) return false;
        partition->moving->bytes = std::max(partition->moving->bytes, bytes);
        partition->moving->end = std::max(partition->moving->end, span.facts.end);
    }
    base::MutexLock lock(mutex_);
    return is_carried(*partition, log, volume);
}

void PartitionTable::Impl::hand_over(const HostedPartitionPtr& partition,
                                     const storage::LogPtr& log, const std::string& volume) {
    base::MutexLock lock(mutex_);
    partition->copying = false;
    if (!is_carried(*partition, log, volume)) return;
    partition->moving->handed_over = true;
    aim(partition, std::nullopt, std::make_shared<Batch>(catalog::ImageVersion{}, 1));
}

void PartitionTable::Impl::remove_copy(const HostedPartition& partition,
                                       const std::string& volume) const {
    auto removed = storage::remove_partition(*options_.places.find(volume)->second.volume,
                                             {partition.directory()});
    if (removed) return;
    base::log::warn("cluster", "{}: what a move has left on volume '{}' stays: {}",
                    partition.directory(), volume, removed.error().context);
}

/// The newest picture is on the volume of this epoch and names nothing on any other.
void PartitionTable::Impl::leave_old_volumes(const HostedPartition& partition,
                                             const Tenure& tenure) const {
    std::set<std::string> left;
    for (const auto& step : tenure.walk) {
        if (step.volume == tenure.volume || !left.insert(step.volume).second) continue;
        auto place = options_.places.find(step.volume);
        if (place == options_.places.end()) continue;
        if (!place->second.logs->session().confirm()) continue;
        remove_copy(partition, step.volume);
        base::log::info("cluster", "{} has moved from volume '{}' to '{}'", partition.directory(),
                        step.volume, tenure.volume);
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
                       .volume = partition->tenure().volume,
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
