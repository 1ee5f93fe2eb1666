#pragma once

#include "base/mutex.h"
#include "storage/volume.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kaas::storage {

class MemoryTree;

/// What a step of a `MemoryVolume` does.
enum class Operation {
    kCreate,
    kOpen,
    kMakeDirectory,
    kSyncDirectory,
    kSyncAll,
    kRename,
    kUnlink,
    kRemoveDirectory,
    kList,
    kLock,
    kHold,
    kMark,
    kLook,
    kBeat,
    kWrite,
    kRead,
    kSync,
    kSize,
};

[[nodiscard]] std::string_view name_of(Operation operation);

/// How a step fails.
struct Fault {
    ErrorCode code = ErrorCode::kIo;
    /// When the error comes: instead of the effect, half-way (a write leaves its first half; other
    /// steps do as kNone), or after it (a lost answer). A sync that fails without effect leaves
    /// what was written readable, and no later sync makes it durable: the kernel has marked those
    /// pages clean.
    enum class Effect { kNone, kHalf, kWhole } effect = Effect::kNone;
};

/// What happens to that which was not synced, bytes and names, when the machine dies.
struct CrashFate {
    /// Without a seed, all of it is lost. With one, each name operation is kept or lost by itself,
    /// and of each file a prefix of the unsynced bytes is kept, cut anywhere, perhaps with NULs up
    /// to the old length.
    std::optional<std::uint64_t> seed;
    /// With a seed: what was written since the last sync is kept or lost page by page, in any
    /// order, each as it was at some moment since, NULs where a lost one lies before a kept one. So
    /// write back the page cache, a disk its cache, an NFS client its WRITEs.
    bool holes = false;
};

/// A volume in memory that knows what was made durable, and forgets the rest when told to.
///
/// Names are as fickle as bytes: a created, removed or renamed entry is durable only after
/// `sync_directory` of its directory, whatever was synced inside. Everything is deterministic; a
/// test that prints its seed can be replayed.
///
/// Files and handles of before a crash belong to a dead machine: their calls give kIo. (To kill
/// only a process, drop its objects; to wake a zombie, keep them.) Thread: any; the hook runs on
/// the calling thread, without a lock held.
class MemoryVolume final : public Volume {
public:
    struct Step {
        std::uint64_t number;  ///< counts from 0 since construction
        Operation operation;
        std::string path;
    };
    /// Looks at each step before it is made, and may make it fail. It may use the volume itself:
    /// another process gets its turn there.
    using Hook = std::function<std::optional<Fault>(const Step&)>;

    explicit MemoryVolume(std::string root = "memory");
    ~MemoryVolume() override;

    void set_hook(Hook hook) KAAS_EXCLUDES(mutex_);
    /// The `nth` step of that kind from now on (1 is the next) fails.
    void fail_nth(Operation operation, std::uint64_t nth, Fault fault) KAAS_EXCLUDES(mutex_);
    /// From now on that kind of sync does nothing and says it did: a disk that lies, or a program
    /// that forgot the call. A crash test that still passes then tests nothing.
    void lie_about(Operation sync) KAAS_EXCLUDES(mutex_);
    /// From step `number` on nothing is done any more and every call gives kIo, until `crash`.
    void halt_at(std::uint64_t number) KAAS_EXCLUDES(mutex_);
    [[nodiscard]] std::uint64_t steps() const KAAS_EXCLUDES(mutex_);

    /// The machine dies and comes back: what was synced is there, the rest as `fate` says.
    void crash(CrashFate fate = {}) KAAS_EXCLUDES(mutex_);

    void set_local(bool local) KAAS_EXCLUDES(mutex_);
    /// Whether `cached` says yes and `try_read_at` gives anything.
    void set_cached(bool cached) KAAS_EXCLUDES(mutex_);
    void set_space(Space space) KAAS_EXCLUDES(mutex_);
    /// From now on files and directories take blocks, of which there are so many bytes; what finds
    /// none gets kNoSpace, and `space` says how many are left.
    void limit_to(std::uint64_t bytes) KAAS_EXCLUDES(mutex_);

    [[nodiscard]] Result<std::unique_ptr<File>> create(const std::string& path) override;
    [[nodiscard]] Result<std::unique_ptr<File>> create_private(const std::string& path) override;
    [[nodiscard]] Result<std::unique_ptr<File>> open(const std::string& path,
                                                     OpenMode mode) override;
    [[nodiscard]] Result<void> make_directory(const std::string& path) override;
    [[nodiscard]] Result<void> sync_directory(const std::string& path) override;
    [[nodiscard]] bool can_sync_all() const override KAAS_EXCLUDES(mutex_);
    [[nodiscard]] Result<void> sync_all() override;
    [[nodiscard]] Result<void> rename(const std::string& from, const std::string& to) override;
    [[nodiscard]] Result<void> unlink(const std::string& path) override;
    [[nodiscard]] Result<void> remove_directory(const std::string& path) override;
    [[nodiscard]] Result<std::vector<std::string>> list(const std::string& path) override;
    [[nodiscard]] Result<std::unique_ptr<FileLock>> lock(const std::string& path,
                                                         std::string_view text) override;
    [[nodiscard]] Result<std::unique_ptr<DirectoryHandle>> hold(const std::string& path) override;
    [[nodiscard]] Result<void> mark(const std::string& path, MarkKind kind) override;
    [[nodiscard]] bool is_local() const override;
    [[nodiscard]] Result<Space> space() override;
    [[nodiscard]] const std::string& root() const override { return root_; }

private:
    class Attempt;
    class OpenFile;
    class HeldDirectory;
    class HeldLock;
    struct PlannedFault {
        Operation operation;
        std::uint64_t countdown;
        Fault fault;
    };

    /// Counts a step and decides what becomes of it.
    [[nodiscard]] Attempt begin(Operation operation, const std::string& path) KAAS_EXCLUDES(mutex_);
    /// Whether so many more bytes fit, of whole blocks.
    [[nodiscard]] Result<void> check_room(const std::string& path, std::uint64_t bytes) const
        KAAS_REQUIRES(mutex_);
    [[nodiscard]] bool lies_about(Operation sync) const KAAS_REQUIRES(mutex_);
    [[nodiscard]] Result<void> end_mark(const std::string& path, MarkKind kind);

    const std::string root_;
    mutable base::Mutex mutex_;
    std::unique_ptr<MemoryTree> tree_ KAAS_PT_GUARDED_BY(mutex_);
    Hook hook_ KAAS_GUARDED_BY(mutex_);
    std::vector<PlannedFault> planned_ KAAS_GUARDED_BY(mutex_);
    std::uint64_t steps_ KAAS_GUARDED_BY(mutex_) = 0;
    std::vector<Operation> lies_ KAAS_GUARDED_BY(mutex_);
    std::optional<std::uint64_t> halt_at_ KAAS_GUARDED_BY(mutex_);
    bool sync_all_failed_ KAAS_GUARDED_BY(mutex_) = false;  ///< as `PosixVolume` remembers
    bool local_ KAAS_GUARDED_BY(mutex_) = true;
    bool cached_ KAAS_GUARDED_BY(mutex_) = true;
    std::optional<std::uint64_t> limit_ KAAS_GUARDED_BY(mutex_);
    Space space_ KAAS_GUARDED_BY(mutex_){.total_bytes = std::uint64_t{1} << 40,
                                         .usable_bytes = std::uint64_t{1} << 39};
};

}  // namespace kaas::storage
