#pragma once

#include "base/bytes.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "base/mutex.h"
#include "base/unique_fd.h"
#include "storage/descriptor_cache.h"
#include "storage/error.h"
#include "storage/volume.h"

#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

/// The inside of `PosixVolume`, for its own sources.
namespace kaas::storage {

/// The error of a system call on `path`, with errno's text.
[[nodiscard]] std::unexpected<Error> fail_errno(std::string_view call, const std::string& path,
                                                int error = errno);

/// Repeats a system call that a signal interrupted.
template <class Call>
auto again(Call call) {
    decltype(call()) result;
    do {
        result = call();
    } while (result < 0 && errno == EINTR);
    return result;
}

/// Adds the duration of a scope to a histogram, if there is one.
class Timed {
public:
    explicit Timed(base::metrics::Histogram* histogram) : histogram_(histogram) {
        if (histogram_ != nullptr) begin_ = base::Clock::system().now();
    }
    ~Timed() {
        if (histogram_ == nullptr) return;
        auto took = base::Clock::system().now() - begin_;
        histogram_->observe_us(std::chrono::duration_cast<std::chrono::microseconds>(took).count());
    }
    Timed(const Timed&) = delete;
    Timed& operator=(const Timed&) = delete;

private:
    base::metrics::Histogram* histogram_;
    base::Clock::Steady begin_;
};

class PosixFile;

/// What a volume and its files share; it lives as long as the last of them.
struct PosixShared {
    base::UniqueFd root;
    /// For syncfs(2), which tells of errors since this was opened; none where it cannot be relied
    /// upon.
    base::UniqueFd whole;
    bool local = false;
    bool honest_sync = true;
    std::shared_ptr<DescriptorCache> descriptors;
    std::function<int(int)> datasync = ::fdatasync;  ///< a test's fails when the test wants
    std::function<int(int)> sync_whole = ::syncfs;   ///< of `whole`; as `datasync`
    base::metrics::Histogram* write_latency = nullptr;
    base::metrics::Histogram* read_latency = nullptr;
    base::metrics::Histogram* fsync_latency = nullptr;
    base::metrics::Histogram* check_latency = nullptr;

    base::Mutex sync_all_mutex;  ///< comes before `mutex`
    /// The kernel tells of an error once: who has written, and calls `sync_all` behind one that
    /// failed, would hear nothing of it. So there is no good one any more.
    std::atomic<bool> sync_all_failed = false;
    /// Held for no call of the system: files end, and take it, on reactors too.
    base::Mutex mutex;
    /// Every file by its path: it is opened again by it, so it has to know of each change. The keys
    /// are views into the files.
    std::unordered_multimap<std::string_view, PosixFile*> files KAAS_GUARDED_BY(mutex);
};

/// A file of a directory of the operating system.
///
/// Its descriptor may be closed while nobody uses it, and is opened again by name for whoever comes
/// next; that this is the same file is checked. With writes that are not synced it is synced first,
/// so that an error of the disk always finds somebody to be told to: such a failure is kept, and
/// answers every later write and sync.
class PosixFile final : public File,
                        public std::enable_shared_from_this<PosixFile>,
                        private DescriptorCache::Member {
public:
    /// `flags` as of open(2), those for making a file included; `mode` is for them. Errors: the
    /// volume's.
    [[nodiscard]] static Result<std::shared_ptr<PosixFile>> open(
        std::shared_ptr<PosixShared> shared, const std::string& path, int flags,
        unsigned mode = 0644);
    ~PosixFile() override;

    Result<void> write_at(std::uint64_t offset, std::span<const base::ByteView> pieces) override;
    Result<std::size_t> read_at(std::uint64_t offset, base::MutableBytes into) override;
    Result<std::size_t> try_read_at(std::uint64_t offset, base::MutableBytes into) override;
    bool cached(std::uint64_t offset, std::uint64_t length) override;
    Result<void> sync() override;
    Result<std::uint64_t> size() override;
    bool has_descriptor() const override { return true; }
    Lease descriptor_if_open() override KAAS_EXCLUDES(mutex_);
    Result<Lease> descriptor() override KAAS_EXCLUDES(mutex_);
    bool is_local() const override { return shared_->local; }
    std::string path() const override KAAS_EXCLUDES(mutex_);

    /// Around a sync of the whole volume, of which there is one at a time.
    void all_sync_begins() KAAS_EXCLUDES(mutex_);
    void all_sync_ended(const Result<void>& outcome) KAAS_EXCLUDES(mutex_);

    /// As `descriptor`, but null when its name is gone, or another file's.
    [[nodiscard]] Result<Lease> descriptor_unless_gone() KAAS_EXCLUDES(mutex_);
    /// Opens it if need be, and keeps it open from now on: its name is about to go. One that is
    /// gone already is no error: who still reads it finds out.
    [[nodiscard]] Result<void> keep_open() KAAS_EXCLUDES(mutex_);
    /// Its name is `path` now.
    void renamed(const std::string& path) KAAS_EXCLUDES(mutex_);

private:
    PosixFile(std::shared_ptr<PosixShared> shared, std::string path, int flags);

    [[nodiscard]] Result<void> open_first(int flags, unsigned mode) KAAS_EXCLUDES(mutex_);
    [[nodiscard]] Result<Lease> open_again(bool& gone) KAAS_EXCLUDES(mutex_);
    void enter_files() KAAS_REQUIRES(shared_->mutex) KAAS_EXCLUDES(mutex_);
    void leave_files() KAAS_REQUIRES(shared_->mutex) KAAS_EXCLUDES(mutex_);
    [[nodiscard]] std::unexpected<Error> fail_call(std::string_view call, int error = errno) const {
        return fail_errno(call, path(), error);
    }
    /// A descriptor for a change. Errors: the failure of an earlier sync.
    [[nodiscard]] Result<Lease> descriptor_to_write() KAAS_EXCLUDES(mutex_);
    void count_write() KAAS_EXCLUDES(mutex_);
    [[nodiscard]] std::optional<Error> failure() const KAAS_EXCLUDES(mutex_);
    [[nodiscard]] Result<void> sync_descriptor(int descriptor) KAAS_EXCLUDES(sync_mutex_, mutex_);
    bool close_clean() override KAAS_EXCLUDES(mutex_);
    bool close_dirty() override KAAS_EXCLUDES(mutex_);
    std::shared_ptr<void> owner() override { return weak_from_this().lock(); }
    [[nodiscard]] bool in_use() const KAAS_REQUIRES(mutex_) { return lease_.use_count() > 1; }

    const std::shared_ptr<PosixShared> shared_;
    const int flags_;  ///< to open it again
    ino_t inode_ = 0;
    /// The kernel tells of an error once for each opening: of two syncs at a time, one would hear
    /// nothing of it. Comes before `mutex_`; never taken on a reactor.
    base::Mutex sync_mutex_;
    mutable base::Mutex mutex_;
    /// Changed only under the volume's mutex, too, which has it as a key.
    std::string path_ KAAS_GUARDED_BY(mutex_);
    Lease lease_ KAAS_GUARDED_BY(mutex_);
    bool kept_ KAAS_GUARDED_BY(mutex_) = false;
    /// Begins and ends of writes; those before a good sync began.
    std::uint32_t writes_ KAAS_GUARDED_BY(mutex_) = 0;
    std::uint32_t synced_ KAAS_GUARDED_BY(mutex_) = 0;
    std::uint32_t all_synced_ KAAS_GUARDED_BY(mutex_) = 0;  ///< once the running one has ended
    std::unique_ptr<const Error> failure_ KAAS_GUARDED_BY(mutex_);  ///< the first; it stays
};

using PosixFiles = std::vector<std::shared_ptr<PosixFile>>;

/// The files of the volume that are open, or may be opened again, by this path.
[[nodiscard]] PosixFiles files_of(PosixShared& shared, const std::string& path);

/// Keeps them open, because the name is about to go.
[[nodiscard]] Result<void> keep_open(PosixShared& shared, const std::string& path);

/// `Volume::sync_all` where there is a `whole`; `root` is for messages.
[[nodiscard]] Result<void> sync_all(PosixShared& shared, const std::string& root);

/// Opens below the volume's root; closes another file when the process has no descriptor left.
[[nodiscard]] base::UniqueFd open_below(PosixShared& shared, const char* path, int flags,
                                        unsigned mode = 0);

}  // namespace kaas::storage
