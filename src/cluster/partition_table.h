#pragma once

#include "base/clock.h"
#include "base/executor.h"
#include "base/ids.h"
#include "catalog/change.h"
#include "catalog/image.h"
#include "cluster/admin.h"
#include "cluster/place.h"
#include "cluster/tenancy.h"
#include "cluster/versioned.h"
#include "storage/log_config.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace kaas::storage {
class PartitionLog;
}  // namespace kaas::storage

namespace kaas::cluster {

/// Answer to a look-up. `log` is set for kServing, and for kOffline where what it has may be read.
struct Hosted {
    Hosting state = Hosting::kUnknown;
    std::shared_ptr<storage::PartitionLog> log;
};

/// What reactors look into: an image, and a place for the log of each of its partitions.
struct TableView;

/// Look-up of one reactor: cheap enough for every partition of every Produce and Fetch (one atomic
/// load, one hash, one lock that is almost never contended). The table must outlive it. Thread: its
/// reactor.
class PartitionReader {
public:
    explicit PartitionReader(const Versioned<TableView>& views);
    PartitionReader(PartitionReader&&) noexcept;
    PartitionReader& operator=(PartitionReader&&) noexcept;
    ~PartitionReader();

    [[nodiscard]] Hosted find(const base::TopicId& topic, base::PartitionId partition);
    [[nodiscard]] Hosted find(std::string_view topic, base::PartitionId partition);

    /// The image that look-ups go by now; the reference lives until the next call on this reader.
    [[nodiscard]] const catalog::Image& image();
    /// Lets go of what is not the newest image any more. Who looks nothing up for long calls it.
    void refresh();

private:
    Versioned<TableView>::Reader views_;
};

/// When open logs are looked through, to let go of what is old; at most once a second.
struct UpkeepPace {
    std::chrono::milliseconds first{30'000};       ///< `log.initial.task.delay.ms`
    std::chrono::milliseconds segments{300'000};   ///< `log.retention.check.interval.ms`
    std::chrono::milliseconds producers{600'000};  ///< `producer.id.expiration.check.interval.ms`
};

/// The partitions that the assignment gives to this broker's present incarnations: opens and closes
/// their logs as images come, on the I/O pool, and reclaims what deleted topics leave behind.
/// Thread: as each call says.
class PartitionTable {
public:
    /// What the controller is told. Called from any thread.
    struct Reports {
        std::function<void(catalog::ImageVersion)> applied;
        std::function<void(std::vector<catalog::OpenedEpoch>)> opened;
        /// Epochs that this broker has given up, for ever: they were asked back, or their logs
        /// have failed, or it drains. Said again about once a second until an image shows that the
        /// controller has heard of it. The same holds for `moved`.
        std::function<void(std::vector<catalog::PartitionEpoch>)> released;
        /// Epochs that this broker has given up to lead the next one on another volume.
        std::function<void(std::vector<MovedEpoch>)> moved;
        std::function<void(base::TopicId)> reclaimed;
    };
    struct Options {
        base::BrokerId self;
        Places places;
        base::Executor* io_pool = nullptr;
        base::Clock* clock = &base::Clock::system();
        std::function<storage::LogConfig(const catalog::ConfigMap&)> log_config;
        /// Sees each image before it is shown.
        std::function<void(const catalog::ImagePtr&)> on_image = [](const catalog::ImagePtr&) {};
        Reports reports;
        /// Logs that open or close at once; the I/O pool has other work too.
        std::size_t width = 8;
        UpkeepPace upkeep;
        /// How long a log that closes may wait for its running cycle. Logs that close together
        /// share it: of a volume that hangs, one would otherwise wait behind the other.
        std::chrono::milliseconds release_patience{5'000};
        /// Logs with earlier epochs were opened together, in so long.
        std::function<void(std::chrono::microseconds)> on_recovered =
            [](std::chrono::microseconds) {};
    };

    explicit PartitionTable(Options options);
    ~PartitionTable();

    /// Takes the next image; the logs that it gives or takes away open and close in the background,
    /// and `Reports::applied` follows when they have. False, and nothing happens, when it is not
    /// newer than the one that is shown: a push of a controller that has been succeeded (DESIGN
    /// 10), or one that comes twice. Images come on one thread (control).
    bool apply(const catalog::ImagePtr& next);
    /// The newest image that this broker was given; an empty one before the first. Thread: any.
    [[nodiscard]] catalog::ImagePtr image() const;

    /// One per reactor.
    [[nodiscard]] PartitionReader reader() const;

    /// Partitions assigned here whose log is not open yet, for `/readyz`. Any thread.
    [[nodiscard]] std::size_t opening() const;
    /// Partitions assigned here whose log failed. Any thread.
    [[nodiscard]] std::size_t offline() const;
    [[nodiscard]] std::size_t serving() const;
    /// Those that serve, with records that cannot be read. Any thread.
    [[nodiscard]] std::size_t damaged() const;

    /// How a request to move a partition to another volume of this broker ends.
    enum class Move {
        kBegun,    ///< or there already, or on its way: nothing to wait for
        kNotHere,  ///< no log of it is open here
        kOffline,  ///< its log has failed, or its volume is missing
    };
    /// Copies the log to `volume` while it is served, then hands the partition over to itself there
    /// under a new epoch (DESIGN 9); clients see retriable errors for the length of the last copy.
    /// A move to where it is, or to another place, ends one that runs. Thread: any.
    [[nodiscard]] Move move(const base::TopicPartition& id, const std::string& volume);

    /// A log on a volume of this broker.
    struct Stored {
        std::string topic;
        base::PartitionId partition;
        std::string volume;
        std::uint64_t bytes = 0;
        std::int64_t lag = 0;    ///< offsets that a copy has to catch up
        bool is_future = false;  ///< a copy that a move makes
    };
    [[nodiscard]] std::vector<Stored> stored() const;
    /// Logs that serve. Any thread.
    [[nodiscard]] std::vector<std::shared_ptr<storage::PartitionLog>> open_logs() const;

    /// Looks after open logs: reports which epochs have been written, gives up those whose log has
    /// failed, tries again what could not be done, fails tickets that a hung volume keeps waiting,
    /// lets old segments and idle producers go when it is time to look for them.
    /// To be called about once a second, on any one thread; it does no I/O.
    void tick();

    /// This broker lives on the volume as `place` says from now on, as an earlier life whose
    /// session has ended did before, or nobody did. What that one had is dropped where it stands:
    /// nothing more is written, acknowledged or reported of it. What the earlier place points to
    /// must still outlive the table and all logs that it gave out. Thread: that of images.
    void replace_place(const std::string& volume, Place place);
    /// The volume is lost: as before, and its partitions are offline here.
    void remove_place(const std::string& volume);

    /// Gives everything back, for others to lead: of each volume `width` partitions at a time, the
    /// next ones once an image shows that those are gone. The rest is served meanwhile, images are
    /// applied, and what they assign here is given back; ticks go on. Ends as `close`, for which it
    /// keeps a quarter of `patience`. False when not everything was given back in time. Blocks; not
    /// on the I/O pool, nor on the thread of images.
    bool drain(std::size_t width, std::chrono::milliseconds patience);
    /// For a broker whom nobody succeeds. Releases every log, at once and without a report: each
    /// answers what it can and writes its last line. False when
    /// `patience` has passed before: what hangs still hangs then, and every log takes nothing any
    /// more. Blocks; not on the I/O pool. Later images open nothing.
    bool close(std::chrono::milliseconds patience);

private:
    class Impl;
    std::shared_ptr<Impl> impl_;
};

}  // namespace kaas::cluster
