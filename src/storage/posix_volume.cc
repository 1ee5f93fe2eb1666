#include "storage/posix_volume.h"

#include "base/bytes.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "storage/error.h"
#include "storage/volume.h"

#include <fmt/format.h>

#include <asm-generic/errno.h>
#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <expected>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

namespace kaas::storage {
namespace {

ErrorCode code_of(int error) {
    switch (error) {
        case ENOENT: return ErrorCode::kNotFound;
        case EEXIST: return ErrorCode::kExists;
        case ENOSPC:
        case EDQUOT:
        case EFBIG: return ErrorCode::kNoSpace;
        case EMFILE:
        case ENFILE: return ErrorCode::kTooManyOpen;
        default: return ErrorCode::kIo;
    }
}

std::unexpected<Error> fail_errno(std::string_view call, const std::string& path,
                                  int error = errno) {
    return fail(code_of(error),
                fmt::format("{} {}: {}", call, path, std::generic_category().message(error)));
}

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

struct Latencies {
    base::metrics::Histogram* write;
    base::metrics::Histogram* read;
    base::metrics::Histogram* fsync;
};

/// The kernel's `struct cachestat`, newer than our headers.
struct CacheRange {
    std::uint64_t offset;
    std::uint64_t length;
};
struct CacheStat {
    std::uint64_t cached;
    std::uint64_t dirty;
    std::uint64_t writeback;
    std::uint64_t evicted;
    std::uint64_t recently_evicted;
};
constexpr long kCachestatCall = 451;  // Linux 6.5

class PosixFile final : public File {
public:
    PosixFile(base::UniqueFd fd, std::string path, bool local, bool honest_sync,
              Latencies latencies)
        : fd_(std::move(fd)),
          path_(std::move(path)),
          local_(local),
          honest_sync_(honest_sync),
          latencies_(latencies) {}

    Result<void> write_at(std::uint64_t offset, std::span<const base::ByteView> pieces) override {
        Timed timed(latencies_.write);
        std::array<iovec, kMaxPieces> batch;
        std::size_t next = 0;  // the piece to go on with, and how much of it is written
        std::size_t written = 0;
        while (next < pieces.size()) {
            std::size_t count = 0;
            for (; count < kMaxPieces && next + count < pieces.size(); ++count) {
                auto piece = pieces[next + count].subspan(count == 0 ? written : 0);
                batch[count] = {const_cast<std::byte*>(piece.data()), piece.size()};
            }
            // A short count does not say why; the call for the rest does.
            ssize_t done = again([&] {
                return ::pwritev(fd_.get(), batch.data(), static_cast<int>(count),
                                 static_cast<off_t>(offset));
            });
            if (done < 0) return fail_errno("write", path_);
            offset += static_cast<std::uint64_t>(done);
            auto left = static_cast<std::size_t>(done);
            std::size_t before = next;
            while (next < pieces.size() && left >= pieces[next].size() - written) {
                left -= pieces[next].size() - written;
                written = 0;
                ++next;
            }
            written += left;
            if (done == 0 && next == before) return fail_errno("write", path_, EIO);
        }
        return {};
    }

    Result<std::size_t> read_at(std::uint64_t offset, base::MutableBytes into) override {
        Timed timed(latencies_.read);
        std::size_t done = 0;
        while (done < into.size()) {
            ssize_t got = again([&] {
                return ::pread(fd_.get(), into.data() + done, into.size() - done,
                               static_cast<off_t>(offset + done));
            });
            if (got < 0) return fail_errno("read", path_);
            if (got == 0) break;
            done += static_cast<std::size_t>(got);
        }
        return done;
    }

    Result<std::size_t> try_read_at(std::uint64_t offset, base::MutableBytes into) override {
        std::size_t done = 0;
        while (done < into.size()) {
            iovec rest{into.data() + done, into.size() - done};
            ssize_t got = again([&] {
                return ::preadv2(fd_.get(), &rest, 1, static_cast<off_t>(offset + done),
                                 RWF_NOWAIT);
            });
            // EOPNOTSUPP: this file system cannot say; the caller then reads where it may block.
            if (got < 0 && (errno == EAGAIN || errno == EOPNOTSUPP)) break;
            if (got < 0) return fail_errno("read", path_);
            if (got == 0) break;
            done += static_cast<std::size_t>(got);
        }
        return done;
    }

    bool cached(std::uint64_t offset, std::uint64_t length) override {
        if (length == 0) return true;
        static const auto page_bytes = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
        CacheRange range{offset, length};
        CacheStat stat{};
        if (::syscall(kCachestatCall, fd_.get(), &range, &stat, 0U) == 0) {
            if (stat.cached < (offset + length - 1) / page_bytes - offset / page_bytes + 1)
                return false;
            // It counts pages that are still on their way from the disk, too; read-ahead fills
            // them in order.
            return probe(offset, length, kReadAheadBytes);
        }
        return probe(offset, length, kSmallestReadAheadBytes);
    }

    Result<void> sync() override {
        if (!honest_sync_) return {};
        Timed timed(latencies_.fsync);
        // Not again(): after any failure, EINTR included, the kernel may have dropped the dirty
        // pages.
        if (::fdatasync(fd_.get()) != 0) return fail_errno("fdatasync", path_);
        return {};
    }

    Result<std::uint64_t> size() override {
        struct stat status;
        if (::fstat(fd_.get(), &status) != 0) return fail_errno("stat", path_);
        return static_cast<std::uint64_t>(status.st_size);
    }

    int descriptor() const override { return fd_.get(); }
    bool is_local() const override { return local_; }

private:
    static constexpr std::size_t kMaxPieces = 1024;  // IOV_MAX of Linux

    static constexpr std::uint64_t kReadAheadBytes = 256 * 1024;
    static constexpr std::uint64_t kSmallestReadAheadBytes = 64 * 1024;

    /// Reads one byte each `stride`, and the last: a wrong "yes" costs one wait.
    bool probe(std::uint64_t offset, std::uint64_t length, std::uint64_t stride) {
        std::byte byte;
        for (std::uint64_t at = 0; at < length; at += stride) {
            auto got = try_read_at(offset + at, {&byte, 1});
            if (!got || *got == 0) return false;
        }
        auto last = try_read_at(offset + length - 1, {&byte, 1});
        return last && *last == 1;
    }

    base::UniqueFd fd_;
    std::string path_;
    bool local_;
    bool honest_sync_;
    Latencies latencies_;
};

class HeldDirectory final : public DirectoryHandle {
public:
    HeldDirectory(base::UniqueFd fd, std::string path)
        : fd_(std::move(fd)), path_(std::move(path)) {}

    Result<Liveness> look() override {
        struct statx status;
        if (!ask(STATX_MODE | STATX_NLINK, status)) {
            if (errno == ESTALE || errno == ENOENT) return Liveness::kMarked;
            return fail(ErrorCode::kIo,
                        fmt::format("statx {}: {}", path_, std::generic_category().message(errno)));
        }
        // An answer without what was asked for proves nothing.
        if ((status.stx_mask & (STATX_MODE | STATX_NLINK)) != (STATX_MODE | STATX_NLINK)) {
            return fail(ErrorCode::kIo, fmt::format("statx {}: no mode and link count", path_));
        }
        bool marked = (status.stx_mode & 07777) == 0 || status.stx_nlink == 0;
        return marked ? Liveness::kMarked : Liveness::kAlive;
    }

    Result<void> beat(std::int64_t counter) override {
        std::array<timespec, 2> times{};
        times[0].tv_nsec = UTIME_OMIT;
        times[1].tv_sec = counter;
        if (::utimensat(fd_.get(), "", times.data(), AT_EMPTY_PATH) != 0) {
            return fail_errno("utimensat", path_);
        }
        return {};
    }

    Result<std::int64_t> last_beat() override {
        struct statx status;
        if (!ask(STATX_MTIME, status)) return fail_errno("statx", path_);
        return status.stx_mtime.tv_sec;
    }

private:
    bool ask(unsigned mask, struct statx& status) {
        return again([&] {
                   return ::statx(fd_.get(), "", AT_EMPTY_PATH | AT_STATX_FORCE_SYNC, mask,
                                  &status);
               }) == 0;
    }

    base::UniqueFd fd_;
    std::string path_;
};

class HeldLock final : public FileLock {
public:
    explicit HeldLock(base::UniqueFd fd) : fd_(std::move(fd)) {}

private:
    base::UniqueFd fd_;
};

/// True for file systems whose page cache is all there is between us and the disk.
bool is_local_type(decltype(std::declval<struct statfs>().f_type) type) {
    constexpr std::uint32_t kXfs = 0x58465342;  // XFS_SUPER_MAGIC
    constexpr std::uint32_t kZfs = 0x2fc12fc1;  // ZFS_SUPER_MAGIC, from OpenZFS
    switch (static_cast<std::uint32_t>(type)) {
        case EXT4_SUPER_MAGIC:
        case kXfs:
        case kZfs:
        case BTRFS_SUPER_MAGIC:
        case F2FS_SUPER_MAGIC:
        case TMPFS_MAGIC:
        case OVERLAYFS_SUPER_MAGIC: return true;
        default: return false;
    }
}

std::string parent_of(const std::string& path) {
    auto slash = path.rfind('/');
    return slash == std::string::npos ? std::string() : path.substr(0, slash);
}

/// "" names the root itself.
const char* name_at_root(const std::string& path) { return path.empty() ? "." : path.c_str(); }

/// Makes every missing level of `root`, each one durable in its parent.
Result<void> make_root(const std::string& root) {
    for (std::size_t end = root.find('/', 1);; end = root.find('/', end + 1)) {
        std::string level = root.substr(0, end);
        if (::mkdir(level.c_str(), 0755) == 0) {
            std::string above = level + "/..";
            base::UniqueFd parent(::open(above.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
            if (!parent || ::fsync(parent.get()) != 0) return fail_errno("fsync", above);
        } else if (errno != EEXIST) {
            return fail_errno("mkdir", level);
        }
        if (end == std::string::npos) return {};
    }
}

}  // namespace

Result<std::unique_ptr<PosixVolume>> PosixVolume::open(const std::string& root,
                                                       PosixVolumeOptions options) {
    if (root.empty()) return fail(ErrorCode::kNotFound, "a volume needs a directory");
    if (options.create_root) KAAS_TRY(make_root(root));
    base::UniqueFd fd(
        again([&] { return ::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC); }));
    if (!fd) return fail_errno("open", root);
    struct statfs status;
    if (again([&] { return ::fstatfs(fd.get(), &status); }) != 0) return fail_errno("statfs", root);
    return std::unique_ptr<PosixVolume>(
        new PosixVolume(root, std::move(fd), is_local_type(status.f_type), options));
}

PosixVolume::PosixVolume(std::string root, base::UniqueFd fd, bool local,
                         PosixVolumeOptions options)
    : root_(std::move(root)), fd_(std::move(fd)), local_(local), honest_sync_(options.honest_sync) {
    if (options.metrics == nullptr) return;
    write_latency_ = &options.metrics->histogram("kaas_storage_write_latency_seconds",
                                                 "Time of one write to a file of a volume.");
    read_latency_ = &options.metrics->histogram("kaas_storage_read_latency_seconds",
                                                "Time of one blocking read of a file of a volume.");
    fsync_latency_ =
        &options.metrics->histogram("kaas_storage_fsync_latency_seconds",
                                    "Time of one fsync of a file or directory of a volume.");
}

Result<std::unique_ptr<File>> PosixVolume::open_file(const std::string& path, int flags) {
    base::UniqueFd fd(again(
        [&] { return ::openat(fd_.get(), path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW, 0644); }));
    if (!fd) return fail_errno("open", path);
    return std::make_unique<PosixFile>(std::move(fd), path, local_, honest_sync_,
                                       Latencies{write_latency_, read_latency_, fsync_latency_});
}

bool PosixVolume::same_directory(const PosixVolume& other) const {
    struct stat mine{};
    struct stat theirs{};
    return ::fstat(fd_.get(), &mine) == 0 && ::fstat(other.fd_.get(), &theirs) == 0 &&
           mine.st_dev == theirs.st_dev && mine.st_ino == theirs.st_ino;
}

Result<std::unique_ptr<File>> PosixVolume::create(const std::string& path) {
    return open_file(path, O_RDWR | O_CREAT | O_EXCL);
}

Result<std::unique_ptr<File>> PosixVolume::open(const std::string& path, OpenMode mode) {
    return open_file(path, mode == OpenMode::kRead ? O_RDONLY : O_RDWR);
}

Result<void> PosixVolume::make_directory(const std::string& path) {
    if (::mkdirat(fd_.get(), path.c_str(), 0755) != 0) return fail_errno("mkdir", path);
    return {};
}

Result<base::UniqueFd> PosixVolume::open_directory(const std::string& path) {
    base::UniqueFd fd(again([&] {
        return ::openat(fd_.get(), name_at_root(path),
                        O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    }));
    if (!fd) return fail_errno("open", path);
    return fd;
}

Result<void> PosixVolume::sync_descriptor(int fd, const std::string& path) const {
    if (!honest_sync_) return {};
    Timed timed(fsync_latency_);
    if (::fsync(fd) != 0) return fail_errno("fsync", path);
    return {};
}

Result<void> PosixVolume::sync_directory(const std::string& path) {
    KAAS_TRY_ASSIGN(fd, open_directory(path));
    return sync_descriptor(fd.get(), path);
}

Result<void> PosixVolume::rename(const std::string& from, const std::string& to) {
    if (::renameat(fd_.get(), from.c_str(), fd_.get(), to.c_str()) != 0) {
        return fail_errno("rename", fmt::format("{} to {}", from, to));
    }
    return {};
}

Result<void> PosixVolume::unlink(const std::string& path) {
    if (::unlinkat(fd_.get(), path.c_str(), 0) != 0) return fail_errno("unlink", path);
    return {};
}

Result<void> PosixVolume::remove_directory(const std::string& path) {
    if (::unlinkat(fd_.get(), path.c_str(), AT_REMOVEDIR) != 0) return fail_errno("rmdir", path);
    return {};
}

Result<std::vector<std::string>> PosixVolume::list(const std::string& path) {
    KAAS_TRY_ASSIGN(fd, open_directory(path));
    std::unique_ptr<DIR, int (*)(DIR*)> stream(::fdopendir(fd.get()), ::closedir);
    if (!stream) return fail_errno("opendir", path);
    std::ignore = fd.release();  // the stream closes it

    std::vector<std::string> names;
    while (true) {
        errno = 0;
        dirent* entry =
            ::readdir(stream.get());  // NOLINT(concurrency-mt-unsafe): the stream is ours alone
        if (entry == nullptr) break;
        std::string_view name = entry->d_name;
        if (name != "." && name != "..") names.emplace_back(name);
    }
    if (errno != 0) return fail_errno("readdir", path);
    std::ranges::sort(names);
    return names;
}

Result<std::unique_ptr<FileLock>> PosixVolume::lock(const std::string& path,
                                                    std::string_view text) {
    base::UniqueFd fd(again([&] {
        return ::openat(fd_.get(), path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    }));
    if (!fd) return fail_errno("open", path);
    struct flock whole{};
    whole.l_type = F_WRLCK;
    whole.l_whence = SEEK_SET;
    if (::fcntl(fd.get(), F_OFD_SETLK, &whole) != 0) {
        if (errno != EAGAIN && errno != EACCES) return fail_errno("lock", path);
        std::array<char, 256> holder;
        ssize_t length = ::pread(fd.get(), holder.data(), holder.size(), 0);
        return fail(ErrorCode::kLocked,
                    length > 0 ? std::string(holder.data(), static_cast<std::size_t>(length))
                               : std::string());
    }
    // Shortened only after the new text is in place, so that whoever reads meanwhile sees a holder.
    if (::pwrite(fd.get(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()) ||
        ::ftruncate(fd.get(), static_cast<off_t>(text.size())) != 0) {
        return fail_errno("write", path);
    }
    return std::make_unique<HeldLock>(std::move(fd));
}

Result<std::unique_ptr<DirectoryHandle>> PosixVolume::hold(const std::string& path) {
    base::UniqueFd fd(again([&] {
        return ::openat(fd_.get(), name_at_root(path),
                        O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    }));
    if (!fd) return fail_errno("open", path);
    return std::make_unique<HeldDirectory>(std::move(fd), path);
}

/// Opens what is to be marked; makes it, with mode 0, when it is truly absent. Sets `half_made`,
/// and gives no descriptor, when somebody else took the mode away and we are not root: then only
/// names can be used.
Result<base::UniqueFd> PosixVolume::open_for_mark(const std::string& path, bool& half_made) {
    constexpr int kAttempts = 3;  // a cached absence, its refutation, and the true answer
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
        base::UniqueFd fd(again([&] {
            return ::openat(fd_.get(), path.c_str(),
                            O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        }));
        if (fd) return fd;
        if (errno == EACCES) {
            half_made = true;
            return base::UniqueFd();
        }
        if (errno != ENOENT) return fail_errno("open", path);
        if (::mkdirat(fd_.get(), path.c_str(), 0) == 0) {
            half_made = true;
            return base::UniqueFd();
        }
        if (errno != EEXIST) return fail_errno("mkdir", path);
    }
    return fail(ErrorCode::kIo, fmt::format("mark {}: it exists and cannot be opened", path));
}

Result<void> PosixVolume::mark(const std::string& path, MarkKind kind) {
    bool half_made = false;
    KAAS_TRY_ASSIGN(fd, open_for_mark(path, half_made));
    if (!half_made) {
        if (::fchmod(fd.get(), 0) != 0) return fail_errno("chmod", path);
        KAAS_TRY(sync_descriptor(fd.get(), path));
    }
    std::string parent = parent_of(path);
    if (kind == MarkKind::kRemove) {
        // ENOENT: another marker was faster; the parent's fsync makes its rmdir ours.
        if (::unlinkat(fd_.get(), path.c_str(), AT_REMOVEDIR) != 0 && errno != ENOENT) {
            return fail_errno("rmdir", path);
        }
        return sync_directory(parent);
    }
    if (!half_made) return {};
    // Without a descriptor of its own, a directory's mode is made durable with the whole file
    // system. (On NFS the server has it before chmod returns.)
    if (::fchmodat(fd_.get(), path.c_str(), 0, 0) != 0) return fail_errno("chmod", path);
    KAAS_TRY_ASSIGN(above, open_directory(parent));
    if (honest_sync_ && ::syncfs(above.get()) != 0) return fail_errno("syncfs", parent);
    return sync_descriptor(above.get(), parent);
}

Result<Space> PosixVolume::space() {
    struct statvfs status;
    if (again([&] { return ::fstatvfs(fd_.get(), &status); }) != 0)
        return fail_errno("statvfs", root_);
    return Space{.total_bytes = std::uint64_t{status.f_blocks} * status.f_frsize,
                 .usable_bytes = std::uint64_t{status.f_bavail} * status.f_frsize};
}

}  // namespace kaas::storage
