#pragma once

#include "base/clock.h"
#include "base/ids.h"
#include "catalog/change.h"
#include "cluster/table_view.h"
#include "cluster/tenancy.h"
#include "storage/error.h"
#include "storage/partition_log.h"

#include <boost/container/flat_set.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kaas::cluster {

/// One partition as this broker has it: its tenancy, and the log that stands for it. What reactors
/// see of it follows every step. Thread: passive; its table's lock.
class HostedPartition {
public:
    HostedPartition(base::TopicPartition id, std::shared_ptr<const std::string> topic_directory);

    // As of `Tenancy`.
    bool aim(std::optional<Tenure> tenure);
    void strand(bool stranded);
    [[nodiscard]] Tenancy::Step begin();
    void opened(storage::Result<storage::LogPtr> result, base::Clock::Steady now);
    void closed();
    /// The open log has failed by itself.
    void failed(const storage::Error& why, base::Clock::Steady now);
    void surrender();
    [[nodiscard]] std::optional<catalog::OpenedEpoch> news();
    [[nodiscard]] Tenancy& tenancy() { return tenancy_; }
    [[nodiscard]] const Tenancy& tenancy() const { return tenancy_; }

    /// Begins again without what it has: its volume is another life's now. Gives the log that was
    /// open, which the caller ends.
    [[nodiscard]] storage::LogPtr start_over();
    /// Counts those beginnings: a step that began in an earlier life changes nothing any more.
    [[nodiscard]] int life() const { return life_; }

    [[nodiscard]] const base::TopicPartition& id() const { return id_; }
    [[nodiscard]] std::string directory() const;
    [[nodiscard]] const std::shared_ptr<LogSeat>& seat() const { return seat_; }
    /// True when nothing of it touches files: no step runs, no log is open, and the last cycle of
    /// every log that it had has ended. A volume that hangs may keep one for long.
    [[nodiscard]] bool at_rest();
    /// True when no earlier log of it touches files any more.
    [[nodiscard]] bool earlier_at_rest();
    [[nodiscard]] const storage::LogPtr& log() const { return log_; }
    /// True when it has a log on the volume, or is about to: the topic's directory is needed there.
    [[nodiscard]] bool needs(const std::string& volume) const {
        return tenancy_.needs(volume) || (moving && moving->volume == volume);
    }

    /// A move to another volume, from its request until the assignment has followed.
    struct Moving {
        std::string volume;
        std::uint64_t bytes = 0;  ///< copied so far
        base::Offset end{0};      ///< how far the copy reaches
        bool handed_over = false;
    };
    std::unique_ptr<Moving> moving;
    bool copying = false;  ///< a job is at it
    /// Where moves have left files that nothing names any more.
    boost::container::flat_set<std::string> left_volumes;
    bool discarded = false;  ///< the topic is deleted: no last line is needed

private:
    void let_go();
    void show();

    const base::TopicPartition id_;
    const std::shared_ptr<const std::string> topic_directory_;  ///< that of all its partitions
    const std::shared_ptr<LogSeat> seat_ = std::make_shared<LogSeat>();

    int life_ = 0;
    Tenancy tenancy_;
    storage::LogPtr log_;
    /// The log that has failed because its volume is full: read until the epoch is given up.
    storage::LogPtr read_only_;
    std::vector<storage::LogPtr> leaving_;  ///< ended, but a cycle of theirs still ran
};
using HostedPartitionPtr = std::shared_ptr<HostedPartition>;

}  // namespace kaas::cluster
