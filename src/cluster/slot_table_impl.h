#pragma once

#include "base/clock.h"
#include "base/ids.h"
#include "base/mutex.h"
#include "catalog/change.h"
#include "catalog/image.h"
#include "catalog/slot.h"
#include "cluster/jobs.h"
#include "cluster/place.h"
#include "cluster/release_patience.h"
#include "cluster/slot_host.h"
#include "cluster/slot_table.h"
#include "cluster/tenancy.h"
#include "cluster/write_trials.h"
#include "storage/error.h"
#include "storage/slot_log.h"
#include "storage/volume.h"

#include <fmt/format.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

/// The inside of `SlotTable`, for its own sources.
namespace kaas::cluster {

using SlotLogPtr = std::shared_ptr<storage::SlotLog>;

/// One slot as this broker has it. Guarded by its table's lock.
struct HostedSlot {
    SlotId id;
    base::TopicPartition partition;
    Tenancy tenancy;
    SlotLogPtr log;
    int life = 0;            ///< a step that began in an earlier one changes nothing any more
    bool with_host = false;  ///< from `SlotHost::open` until it has left the slot
    bool lost = false;       ///< the life has ended, but the host is still to leave it

    [[nodiscard]] std::string directory() const {
        return catalog::slot_directory(id.kind, id.slot);
    }
};
using HostedSlotPtr = std::shared_ptr<HostedSlot>;

/// What is said once the lock is gone.
struct SlotOutbox {
    std::vector<catalog::ImageVersion> applied;
    std::vector<catalog::OpenedEpoch> opened;
    std::vector<catalog::PartitionEpoch> released;
};

/// Shared with the jobs that it has on the I/O pool, and with the host's answers.
class SlotTable::Impl : public std::enable_shared_from_this<Impl> {
public:
    explicit Impl(Options options)
        : options_(std::move(options)),
          jobs_(std::make_shared<Jobs>(*options_.io_pool, options_.width)),
          trials_(fmt::format("kaas.probe.{}.slots", options_.self), *options_.clock),
          places_(std::make_shared<const Places>(options_.places)),
          image_(std::make_shared<const catalog::Image>()) {}

    bool apply(const catalog::ImagePtr& next) KAAS_EXCLUDES(mutex_);
    void tick() KAAS_EXCLUDES(mutex_);
    void set_place(const std::string& volume, std::optional<Place> place) KAAS_EXCLUDES(mutex_);
    bool drain(std::size_t width, std::chrono::milliseconds patience) KAAS_EXCLUDES(mutex_);
    bool close(std::chrono::milliseconds patience) KAAS_EXCLUDES(mutex_);
    [[nodiscard]] std::size_t count(Hosting state) const KAAS_EXCLUDES(mutex_);
    [[nodiscard]] bool is_offline(const SlotId& id) const KAAS_EXCLUDES(mutex_);

private:
    using BatchPtr = std::shared_ptr<Batch>;

    void host(const catalog::Topic& topic, catalog::SlotKind kind, const BatchPtr& batch)
        KAAS_REQUIRES(mutex_);
    void host_all(const catalog::Image* before, const BatchPtr& batch) KAAS_REQUIRES(mutex_);
    void aim(const HostedSlotPtr& slot, std::optional<Tenure> tenure, const BatchPtr& batch)
        KAAS_REQUIRES(mutex_);
    void go_on(const HostedSlotPtr& slot) KAAS_REQUIRES(mutex_);
    void report_release(HostedSlot& slot) KAAS_REQUIRES(mutex_);
    void finish(Batch& batch) KAAS_REQUIRES(mutex_);

    void open(const HostedSlotPtr& slot, int life, const Tenure& tenure) KAAS_EXCLUDES(mutex_);
    [[nodiscard]] static storage::Result<storage::OpenedSlot> open_log(const HostedSlot& slot,
                                                                       const Tenure& tenure,
                                                                       const Places& places);
    /// False when the slot's life has ended meanwhile.
    [[nodiscard]] bool hand_to_host(HostedSlot& slot, int life, const SlotLogPtr& log)
        KAAS_EXCLUDES(mutex_);
    void leave(const HostedSlotPtr& slot, std::move_only_function<void()> left)
        KAAS_REQUIRES(mutex_);
    /// The host has left it. True when it was of an earlier life: then this one begins.
    [[nodiscard]] bool end_lost(const HostedSlotPtr& slot) KAAS_REQUIRES(mutex_);
    void left_lost(const HostedSlotPtr& slot) KAAS_EXCLUDES(mutex_);
    void start_over(const HostedSlotPtr& slot) KAAS_REQUIRES(mutex_);
    /// The host serves it; or it does not, or its log did not open.
    void opened(const HostedSlotPtr& slot, int life, storage::Result<void> served)
        KAAS_EXCLUDES(mutex_);
    void note_opened(const HostedSlotPtr& slot, const storage::Result<void>& served)
        KAAS_REQUIRES(mutex_);
    /// The host has left a slot whose log has failed.
    void left_failed(const HostedSlotPtr& slot, storage::ErrorCode why) KAAS_EXCLUDES(mutex_);
    /// The host has left it.
    void release_later(const HostedSlotPtr& slot) KAAS_EXCLUDES(mutex_);
    /// Releases all that wait for it.
    void release_some() KAAS_EXCLUDES(mutex_);

    void look_after_all() KAAS_REQUIRES(mutex_);
    void look_after(const HostedSlotPtr& slot, base::Clock::Steady now) KAAS_REQUIRES(mutex_);
    void look_at_log(const HostedSlotPtr& slot) KAAS_REQUIRES(mutex_);
    void try_writes(const std::string& name, storage::Volume& volume) KAAS_EXCLUDES(mutex_);
    [[nodiscard]] bool give_back_some(std::size_t width) KAAS_EXCLUDES(mutex_);
    [[nodiscard]] bool await_change(base::Clock::Steady deadline) KAAS_EXCLUDES(mutex_);
    void note_change() KAAS_REQUIRES(mutex_);
    [[nodiscard]] bool all_at_rest(base::Clock::Steady deadline) KAAS_EXCLUDES(mutex_);
    [[nodiscard]] std::vector<SlotLogPtr> open_logs() const KAAS_REQUIRES(mutex_);

    /// Sends what is in the outbox, and lets queued jobs run.
    void flush() KAAS_EXCLUDES(mutex_);

    const Options options_;
    const std::shared_ptr<Jobs> jobs_;
    WriteTrials trials_;

    mutable base::Mutex mutex_;
    base::CondVar changed_;
    /// A job goes by those that it found; one of an earlier life changes nothing any more.
    std::shared_ptr<const Places> places_ KAAS_GUARDED_BY(mutex_);
    catalog::ImagePtr image_ KAAS_GUARDED_BY(mutex_);
    std::map<SlotId, HostedSlotPtr> slots_ KAAS_GUARDED_BY(mutex_);
    struct Leaving {
        HostedSlotPtr slot;
        int life;
        SlotLogPtr log;
    };
    std::vector<Leaving> leaving_ KAAS_GUARDED_BY(mutex_);  ///< wait for their release
    SlotOutbox outbox_ KAAS_GUARDED_BY(mutex_);
    bool draining_ KAAS_GUARDED_BY(mutex_) = false;
    /// Of images, and of slots that come and go: a drain looks after each whether more may go.
    std::uint64_t changes_ KAAS_GUARDED_BY(mutex_) = 0;
    std::uint64_t seen_changes_ KAAS_GUARDED_BY(mutex_) = 0;
    bool closing_ KAAS_GUARDED_BY(mutex_) = false;
    ReleasePatience release_patience_ KAAS_GUARDED_BY(mutex_){*options_.clock,
                                                              options_.release_patience};
};

}  // namespace kaas::cluster
