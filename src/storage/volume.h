#pragma once

#include "base/bytes.h"
#include "base/unique_fd.h"
#include "storage/error.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kaas::storage {

/// A descriptor that is open as long as somebody holds this.
using Lease = std::shared_ptr<const base::UniqueFd>;

/// An open regular file of a volume.
/// Thread: calls may come from any thread, several at once; writers agree among themselves. All
/// calls may block, so none is made on a reactor, except `try_read_at` and `cached`. Errors:
/// kNoSpace, kTooManyOpen, kIo with the path and errno text in the context.
class File {
public:
    virtual ~File() = default;

    /// Writes all of `pieces`, one after the other, from `offset` on; a short write is an error
    /// (kNoSpace or kIo), and what is in the file then is unknown.
    [[nodiscard]] virtual Result<void> write_at(std::uint64_t offset,
                                                std::span<const base::ByteView> pieces) = 0;
    /// Reads until `into` is full or the file ends; gives the number of bytes.
    [[nodiscard]] virtual Result<std::size_t> read_at(std::uint64_t offset,
                                                      base::MutableBytes into) = 0;
    /// As `read_at`, but only what is in memory: fewer bytes, even none, when it would have to wait
    /// (preadv2 with RWF_NOWAIT). The one read that a reactor may make, and only on a local volume.
    [[nodiscard]] virtual Result<std::size_t> try_read_at(std::uint64_t offset,
                                                          base::MutableBytes into) = 0;
    /// True when the whole range can be sent without waiting for the disk (cachestat(2), else a
    /// probe).
    [[nodiscard]] virtual bool cached(std::uint64_t offset, std::uint64_t length) = 0;
    /// fdatasync(2): what was written before the call is durable, length included. After a failure
    /// nothing on this file may be retried or trusted (DESIGN 7).
    [[nodiscard]] virtual Result<void> sync() = 0;
    [[nodiscard]] virtual Result<std::uint64_t> size() = 0;
    /// False when there is no descriptor to send from (the in-memory volume).
    [[nodiscard]] virtual bool has_descriptor() const { return false; }
    /// For sendfile(2). None when the file is not open just now: few are, of many. Never blocks.
    [[nodiscard]] virtual Lease descriptor_if_open() { return nullptr; }
    /// The same, and opens it if need be. Errors: the volume's; kIo without descriptors.
    [[nodiscard]] virtual Result<Lease> descriptor() {
        return fail(ErrorCode::kIo, "a file without a descriptor");
    }
    /// As `Volume::is_local`: whether a reactor may look into the page cache for it.
    [[nodiscard]] virtual bool is_local() const = 0;
    /// Its name in the volume, for messages.
    [[nodiscard]] virtual std::string path() const { return {}; }

    /// Says that there was less of it than there should be. Who keeps it opens it anew, and looks.
    void doubt() { doubted_.store(true, std::memory_order_relaxed); }
    [[nodiscard]] bool doubted() const { return doubted_.load(std::memory_order_relaxed); }

private:
    std::atomic<bool> doubted_ = false;
};

enum class OpenMode { kRead, kReadWrite };

/// What a forced look at a held directory says (statx with AT_STATX_FORCE_SYNC, DESIGN 9).
enum class Liveness {
    kAlive,
    kMarked,  ///< mode 0, no links, ESTALE or ENOENT: fenced for ever
};

/// A directory held open with O_PATH: a session, or a controller's election epoch.
/// Thread: any. Blocks: never on a reactor.
class DirectoryHandle {
public:
    virtual ~DirectoryHandle() = default;
    /// One statx. An error (kIo) proves nothing: neither alive nor marked.
    [[nodiscard]] virtual Result<Liveness> look() = 0;
    /// Sets the directory's modification time to `counter` seconds after 1970 (an election
    /// heartbeat).
    [[nodiscard]] virtual Result<void> beat(std::int64_t counter) = 0;
    /// The modification time in whole seconds, by forced statx.
    [[nodiscard]] virtual Result<std::int64_t> last_beat() = 0;
};

enum class MarkKind {
    kRemove,  ///< chmod 0, fsync, rmdir, fsync of the parent: a broker's session
    kKeep,    ///< chmod 0, fsync: a controller's election directory, which stays
};

struct Space {
    std::uint64_t total_bytes = 0;
    std::uint64_t usable_bytes = 0;
};

/// An exclusive lock of this process on a file, kept until destroyed (or until the process dies).
class FileLock {
public:
    virtual ~FileLock() = default;
};

/// One mounted directory tree: the only door to files (DESIGN 3). Paths are relative to its root,
/// with '/' between names.
///
/// Two implementations: POSIX (`posix_volume.h`) and one in memory that drops what was not synced,
/// bytes and names alike, at a chosen step (`memory_volume.h`). Thread: any. Every call may block,
/// so none is made on a reactor. Errors: kNotFound, kExists, kNoSpace, kTooManyOpen, kIo; the
/// context names path and errno text.
class Volume {
public:
    virtual ~Volume() = default;

    /// Makes a file that must not exist (O_CREAT | O_EXCL). Not durable before `File::sync` and
    /// `sync_directory` of its parent.
    [[nodiscard]] virtual Result<std::unique_ptr<File>> create(const std::string& path) = 0;
    /// The same for a file that nobody but our user may read (mode 0600).
    [[nodiscard]] virtual Result<std::unique_ptr<File>> create_private(const std::string& path) = 0;
    /// Opens afresh, so that a network file system revalidates (close-to-open).
    [[nodiscard]] virtual Result<std::unique_ptr<File>> open(const std::string& path,
                                                             OpenMode mode) = 0;
    /// Makes one directory level that must not exist. Not durable before `sync_directory` of its
    /// parent.
    [[nodiscard]] virtual Result<void> make_directory(const std::string& path) = 0;
    /// fsync(2) of a directory: the names made and removed in it are durable.
    [[nodiscard]] virtual Result<void> sync_directory(const std::string& path) = 0;
    /// True when `sync_all` keeps its promise; false where one would have to trust that it does.
    [[nodiscard]] virtual bool can_sync_all() const { return false; }
    /// Makes durable all that was done to the volume before the call, bytes and names. Worth it for
    /// many files at once: it also waits for what others have written to the same file system.
    /// After a failure nothing that was unsynced may be retried or trusted, in no file. Errors:
    /// kIo; the volume's.
    [[nodiscard]] virtual Result<void> sync_all() {
        return fail(ErrorCode::kIo, root() + ": not able to sync everything at once");
    }
    [[nodiscard]] virtual Result<void> rename(const std::string& from, const std::string& to) = 0;
    [[nodiscard]] virtual Result<void> unlink(const std::string& path) = 0;
    [[nodiscard]] virtual Result<void> remove_directory(const std::string& path) = 0;
    /// Names in a directory, sorted. For reclaiming what was deleted and for tools; never to find
    /// state (rule 5).
    [[nodiscard]] virtual Result<std::vector<std::string>> list(const std::string& path) = 0;

    /// Takes the lock on a file, which is made if need be, and writes `text` into it (an OFD lock:
    /// it binds the processes of one machine; between machines, sessions fence). Errors: kLocked;
    /// the context is the holder's text.
    [[nodiscard]] virtual Result<std::unique_ptr<FileLock>> lock(const std::string& path,
                                                                 std::string_view text) = 0;

    /// Holds a directory open for `look`.
    [[nodiscard]] virtual Result<std::unique_ptr<DirectoryHandle>> hold(
        const std::string& path) = 0;
    /// Ends whoever holds `path` (DESIGN 9); a directory that looks absent is first created, with
    /// mode 0.
    [[nodiscard]] virtual Result<void> mark(const std::string& path, MarkKind kind) = 0;

    /// True for file systems of this machine's kernel (ext4, xfs, ...): a reactor may then look
    /// into the page cache. False for NFS, CephFS, FUSE (DESIGN 7).
    [[nodiscard]] virtual bool is_local() const = 0;
    [[nodiscard]] virtual Result<Space> space() = 0;
    /// The root as the user named it, for messages.
    [[nodiscard]] virtual const std::string& root() const = 0;
};

/// When something becomes durable: before a call returns, or by the caller's `sync_all`, which
/// comes before anything is built on it.
enum class Syncs { kNow, kLater };

/// From so many things on, one sync of everything costs less than an fsync or two for each.
inline constexpr std::size_t kWorthSyncingAll = 8;

[[nodiscard]] inline Result<void> sync_file(File& file, Syncs syncs) {
    return syncs == Syncs::kNow ? file.sync() : Result<void>();
}
[[nodiscard]] inline Result<void> sync_directory(Volume& volume, const std::string& path,
                                                 Syncs syncs) {
    return syncs == Syncs::kNow ? volume.sync_directory(path) : Result<void>();
}

/// Makes one directory level that may be there already. Not durable before `sync_directory` of its
/// parent.
[[nodiscard]] Result<void> make_directory_if_missing(Volume& volume, const std::string& path);

/// Creates a file that only the caller ever makes; one that is there is of an attempt of his that
/// got no further, and is opened, to be written again from its beginning.
[[nodiscard]] Result<std::unique_ptr<File>> create_or_reopen(Volume& volume,
                                                             const std::string& path);

/// Removes a file, or a directory with all that is in it. What is gone already is as good as
/// removed: an earlier attempt got further than it could say.
[[nodiscard]] Result<void> remove_tree(Volume& volume, const std::string& path);

/// Shows that the volume takes new files, bytes and syncs again: makes the file `name` in its root,
/// and removes it. For somebody whose next attempt at the real thing would cost something; `name`
/// is that one's alone. Errors: kNoSpace, kTooManyOpen, kIo.
[[nodiscard]] Result<void> probe_writes(Volume& volume, const std::string& name);

/// Reads a whole file, at most `limit_bytes` (kCorrupt when it is longer).
[[nodiscard]] Result<std::string> read_whole(Volume& volume, const std::string& path,
                                             std::size_t limit_bytes);

}  // namespace kaas::storage
