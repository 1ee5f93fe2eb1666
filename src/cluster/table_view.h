#pragma once

#include "base/ids.h"
#include "base/mutex.h"
#include "catalog/image.h"
#include "catalog/sharded_map.h"
#include "cluster/partition_table.h"

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// What a `PartitionTable` shows to reactors.
namespace kaas::cluster {

/// The place of one partition's log. Stays the same while logs come and go, so that a view need not
/// change for each of 10,000 that open at a start.
/// Thread: any.
class LogSeat {
public:
    [[nodiscard]] Hosted get() const KAAS_EXCLUDES(mutex_) {
        base::MutexLock lock(mutex_);
        return {state_, log_};
    }
    void set(Hosting state, std::shared_ptr<storage::PartitionLog> log = nullptr)
        KAAS_EXCLUDES(mutex_) {
        // The old log, perhaps its last reference, dies with the parameter: after the lock is gone.
        base::MutexLock lock(mutex_);
        state_ = state;
        std::swap(log_, log);
    }

private:
    mutable base::Mutex mutex_;
    Hosting state_ KAAS_GUARDED_BY(mutex_) = Hosting::kNotHere;
    std::shared_ptr<storage::PartitionLog> log_ KAAS_GUARDED_BY(mutex_);
};

/// By partition; null where this broker never had the partition.
using LogSeats = std::vector<std::shared_ptr<LogSeat>>;

struct HostedTopic {
    std::string name;
    base::TopicId id;
    LogSeats seats;
};
using HostedTopicPtr = std::shared_ptr<const HostedTopic>;

struct TableView {
    catalog::ImagePtr image;
    catalog::ShardedMap<base::TopicId, HostedTopicPtr> by_id;
    catalog::ShardedMap<std::string_view, HostedTopicPtr> by_name;  // keys are views into the topic
};

}  // namespace kaas::cluster
