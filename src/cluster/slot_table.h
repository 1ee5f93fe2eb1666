#pragma once

#include "base/clock.h"
#include "base/executor.h"
#include "base/ids.h"
#include "catalog/change.h"
#include "catalog/image.h"
#include "cluster/place.h"
#include "cluster/slot_host.h"

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace kaas::cluster {

/// The coordinators' slots that the assignment gives to this broker's present incarnation: opens
/// and closes their logs on the I/O pool as images come, and tells the host of each. A log that
/// fails gives its epoch up and comes back under a new one, as a partition's does.
/// Thread: as each call says.
class SlotTable {
public:
    /// What the controller is told. Called from any thread.
    struct Reports {
        std::function<void(catalog::ImageVersion)> applied;
        std::function<void(std::vector<catalog::OpenedEpoch>)> opened;
        /// Epochs that this broker has given up, for ever, as of `PartitionTable::Reports`.
        std::function<void(std::vector<catalog::PartitionEpoch>)> released;
    };
    struct Options {
        base::BrokerId self;
        Places places;  ///< the volume with the cluster's own files
        SlotHost* host = nullptr;
        base::Executor* io_pool = nullptr;
        base::Clock* clock = &base::Clock::system();
        Reports reports;
        /// Slots that open or close at once; the I/O pool has other work too.
        std::size_t width = 8;
        /// How long a log that closes may wait for its running cycle.
        std::chrono::milliseconds release_patience{5'000};
    };

    explicit SlotTable(Options options);
    ~SlotTable();

    /// Takes the next image; `Reports::applied` follows when every slot that it gives or takes away
    /// is served, has left, or has failed. False, and nothing happens, when it is not newer than
    /// the last one. Images come on one thread (control).
    bool apply(const catalog::ImagePtr& next);

    /// Slots assigned here, by what they are at. Any thread.
    [[nodiscard]] std::size_t led() const;
    [[nodiscard]] std::size_t opening() const;
    [[nodiscard]] std::size_t offline() const;
    /// Named by the assignment, but its log has failed or cannot be read, or an earlier life of
    /// this broker is meant: nobody knows when it serves.
    [[nodiscard]] bool is_offline(const SlotId& id) const;

    /// Looks after open slots: reports which epochs have been written, gives up those whose log has
    /// failed, fails what a hung volume keeps waiting. To be called about once a second, on any one
    /// thread; it does no I/O.
    void tick();

    /// As of `PartitionTable`. The host leaves each slot of the earlier life before the new one
    /// opens it.
    void replace_place(const std::string& volume, Place place);
    void remove_place(const std::string& volume);

    /// As of `PartitionTable`: gives everything back, `width` slots at a time.
    bool drain(std::size_t width, std::chrono::milliseconds patience);
    /// Has every slot left and released, at once and without a report. False when `patience` has
    /// passed before: what hangs still hangs then, and every log takes nothing any more. Blocks;
    /// not on the I/O pool. Later images open nothing.
    bool close(std::chrono::milliseconds patience);

private:
    class Impl;
    std::shared_ptr<Impl> impl_;
};

}  // namespace kaas::cluster
