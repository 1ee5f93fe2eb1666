#pragma once

#include "base/executor.h"
#include "base/mutex.h"
#include "storage/error.h"
#include "storage/volume.h"

#include <cstddef>
#include <memory>
#include <vector>

namespace kaas::storage {

/// A log's checkpoint: a line that says what is durable, so that the next recovery reads less and
/// the journal may forget. Keeps its first error to itself. Called in order, on one thread at a
/// time that may block.
class Checkpoint {
public:
    virtual ~Checkpoint() = default;
    /// False when there is nothing to do any more; then nothing else is called.
    [[nodiscard]] virtual bool begin() = 0;
    /// Makes durable what the line will vouch for.
    virtual void flush(Syncs syncs) = 0;
    /// Writes the line. With kLater true when somebody counts on it, so that it must be synced.
    [[nodiscard]] virtual bool record(Syncs syncs) = 0;
    /// What became of the sync of everything behind each of both, when they synced nothing
    /// themselves.
    virtual void all_synced(const Result<void>& outcome) = 0;
    virtual void end() = 0;
};

/// The checkpoints of a log dir. Those that have come while others were under way share their
/// syncs: two for thousands of logs.
class CheckpointQueue : public std::enable_shared_from_this<CheckpointQueue> {
public:
    struct Options {
        Volume* volume;
        base::Executor* io_pool;
        std::size_t width;  ///< threads of the pool that it may use
    };

    explicit CheckpointQueue(const Options& options) : options_(options) {}

    /// Thread: any.
    void add(std::unique_ptr<Checkpoint> checkpoint) KAAS_EXCLUDES(mutex_);
    /// Sees to what was added, on the pool, so that what is added in a row is together. Thread:
    /// any.
    void start() KAAS_EXCLUDES(mutex_);
    /// Drops what has not begun, and all that comes later. Thread: any.
    void close() KAAS_EXCLUDES(mutex_);

private:
    using Checkpoints = std::vector<std::unique_ptr<Checkpoint>>;

    void run() KAAS_EXCLUDES(mutex_);
    void run(Checkpoints checkpoints) const;

    const Options options_;
    base::Mutex mutex_;
    Checkpoints added_ KAAS_GUARDED_BY(mutex_);
    bool running_ KAAS_GUARDED_BY(mutex_) = false;
    bool closed_ KAAS_GUARDED_BY(mutex_) = false;
};

}  // namespace kaas::storage
