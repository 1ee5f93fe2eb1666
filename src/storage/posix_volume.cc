#include "storage/posix_volume.h"

#include "base/bytes.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "storage/descriptor_cache.h"
#include "storage/error.h"
#include "storage/mount.h"
#include "storage/posix_file.h"
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
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

namespace kaas::storage {
namespace {

/// Of a volume that shares its descriptors with nobody: a tool's.
constexpr std::size_t kDescriptorsOfItsOwn = 1000;

class HeldDirectory final : public DirectoryHandle {
public:
    HeldDirectory(std::shared_ptr<PosixShared> shared, base::UniqueFd fd, std::string path)
        : shared_(std::move(shared)), fd_(std::move(fd)), path_(std::move(path)) {}

    Result<Liveness> look() override {
        const Timed timed(shared_->check_latency);
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

    const std::shared_ptr<PosixShared> shared_;
    base::UniqueFd fd_;
    std::string path_;
};

/// What a volume hands out. The file itself lives on while the volume does something to it, so
/// that whoever gives it back never waits for that.
class PosixHandle final : public File {
public:
    explicit PosixHandle(std::shared_ptr<PosixFile> file) : file_(std::move(file)) {}

    Result<void> write_at(std::uint64_t offset, std::span<const base::ByteView> pieces) override {
        return file_->write_at(offset, pieces);
    }
    Result<std::size_t> read_at(std::uint64_t offset, base::MutableBytes into) override {
        return file_->read_at(offset, into);
    }
    Result<std::size_t> try_read_at(std::uint64_t offset, base::MutableBytes into) override {
        return file_->try_read_at(offset, into);
    }
    bool cached(std::uint64_t offset, std::uint64_t length) override {
        return file_->cached(offset, length);
    }
    Result<void> sync() override { return file_->sync(); }
    Result<std::uint64_t> size() override { return file_->size(); }
    bool has_descriptor() const override { return true; }
    Lease descriptor_if_open() override { return file_->descriptor_if_open(); }
    Result<Lease> descriptor() override { return file_->descriptor(); }
    bool is_local() const override { return file_->is_local(); }
    std::string path() const override { return file_->path(); }

private:
    const std::shared_ptr<PosixFile> file_;
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

/// True where syncfs(2) covers all and says what went wrong: since Linux 5.8, on file systems that
/// write to their disk themselves. Not overlayfs, whose errors stay below, nor FUSE, where it syncs
/// nothing.
bool tells_of_syncfs(decltype(std::declval<struct statfs>().f_type) type) {
    utsname kernel{};
    int major = 0;
    int minor = 0;
    if (::uname(&kernel) != 0 || std::sscanf(kernel.release, "%d.%d", &major, &minor) != 2)
        return false;
    if (std::pair(major, minor) < std::pair(5, 8)) return false;
    constexpr std::uint32_t kXfs = 0x58465342;  // XFS_SUPER_MAGIC
    switch (static_cast<std::uint32_t>(type)) {
        case EXT4_SUPER_MAGIC:
        case kXfs:
        case BTRFS_SUPER_MAGIC:
        case F2FS_SUPER_MAGIC: return true;
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
    auto shared = std::make_shared<PosixShared>();
    shared->root = std::move(fd);
    shared->local = is_local_type(status.f_type);
    shared->honest_sync = options.honest_sync;
    if (tells_of_syncfs(status.f_type)) {
        shared->whole = open_below(*shared, ".", O_RDONLY | O_DIRECTORY);
    }
    shared->descriptors = options.descriptors != nullptr
                              ? options.descriptors
                              : std::make_shared<DescriptorCache>(kDescriptorsOfItsOwn);
    if (options.metrics != nullptr) {
        shared->write_latency = &options.metrics->histogram(
            "kaas_storage_write_latency_seconds", "Time of one write to a file of a volume.");
        shared->read_latency =
            &options.metrics->histogram("kaas_storage_read_latency_seconds",
                                        "Time of one blocking read of a file of a volume.");
        shared->fsync_latency =
            &options.metrics->histogram("kaas_storage_fsync_latency_seconds",
                                        "Time of one fsync of a file or directory of a volume.");
        shared->check_latency = &options.metrics->histogram(
            "kaas_session_check_latency_seconds",
            "Time of one look whether a session or a controller's epoch still lives.");
    }
    return std::unique_ptr<PosixVolume>(new PosixVolume(root, std::move(shared)));
}

PosixVolume::PosixVolume(std::string root, std::shared_ptr<PosixShared> shared)
    : root_(std::move(root)), shared_(std::move(shared)) {}

PosixVolume::~PosixVolume() = default;

bool PosixVolume::same_directory(const PosixVolume& other) const {
    struct stat mine{};
    struct stat theirs{};
    return ::fstat(shared_->root.get(), &mine) == 0 &&
           ::fstat(other.shared_->root.get(), &theirs) == 0 && mine.st_dev == theirs.st_dev &&
           mine.st_ino == theirs.st_ino;
}

std::optional<Mount> PosixVolume::mount() const {
    struct statx status{};
    if (::statx(shared_->root.get(), "", AT_EMPTY_PATH, STATX_MNT_ID, &status) != 0 ||
        (status.stx_mask & STATX_MNT_ID) == 0) {
        return std::nullopt;
    }
    base::UniqueFd table(::open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC));
    std::string text;
    constexpr std::size_t kChunk = 16 * 1024;
    while (table) {
        const auto filled = text.size();
        text.resize(filled + kChunk);
        const auto got = again([&] { return ::read(table.get(), &text[filled], kChunk); });
        text.resize(filled + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
        if (got <= 0) break;
    }
    return find_mount(text, status.stx_mnt_id);
}

Result<std::unique_ptr<File>> PosixVolume::create(const std::string& path) {
    KAAS_TRY_ASSIGN(file, PosixFile::open(shared_, path, O_RDWR | O_CREAT | O_EXCL));
    return std::make_unique<PosixHandle>(std::move(file));
}

Result<std::unique_ptr<File>> PosixVolume::create_private(const std::string& path) {
    KAAS_TRY_ASSIGN(file, PosixFile::open(shared_, path, O_RDWR | O_CREAT | O_EXCL, 0600));
    return std::make_unique<PosixHandle>(std::move(file));
}

Result<std::unique_ptr<File>> PosixVolume::open(const std::string& path, OpenMode mode) {
    KAAS_TRY_ASSIGN(file,
                    PosixFile::open(shared_, path, mode == OpenMode::kRead ? O_RDONLY : O_RDWR));
    return std::make_unique<PosixHandle>(std::move(file));
}

Result<void> PosixVolume::make_directory(const std::string& path) {
    if (::mkdirat(shared_->root.get(), path.c_str(), 0755) != 0) return fail_errno("mkdir", path);
    return {};
}

Result<base::UniqueFd> PosixVolume::open_directory(const std::string& path) const {
    auto fd = open_below(*shared_, name_at_root(path), O_RDONLY | O_DIRECTORY);
    if (!fd) return fail_errno("open", path);
    return fd;
}

Result<void> PosixVolume::sync_descriptor(int fd, const std::string& path) const {
    if (!shared_->honest_sync) return {};
    Timed timed(shared_->fsync_latency);
    if (::fsync(fd) != 0) return fail_errno("fsync", path);
    return {};
}

Result<void> PosixVolume::sync_directory(const std::string& path) {
    KAAS_TRY_ASSIGN(fd, open_directory(path));
    return sync_descriptor(fd.get(), path);
}

Result<void> PosixVolume::rename(const std::string& from, const std::string& to) {
    KAAS_TRY(keep_open(*shared_, to));
    const auto files = files_of(*shared_, from);
    std::vector<Lease> leases;  // who uses one of them meanwhile needs no name
    for (const auto& file : files) {
        KAAS_TRY_ASSIGN(lease, file->descriptor_unless_gone());
        leases.push_back(std::move(lease));
    }
    if (::renameat(shared_->root.get(), from.c_str(), shared_->root.get(), to.c_str()) != 0) {
        return fail_errno("rename", fmt::format("{} to {}", from, to));
    }
    for (const auto& file : files) file->renamed(to);
    return {};
}

bool PosixVolume::can_sync_all() const {
    if (shared_->local && !shared_->honest_sync) return true;
    return shared_->whole && !shared_->sync_all_failed;
}

Result<void> PosixVolume::sync_all() {
    if (shared_->local && !shared_->honest_sync) return {};
    if (!shared_->whole) return Volume::sync_all();
    return storage::sync_all(*shared_, root_);
}

bool PosixVolume::is_local() const { return shared_->local; }

Result<void> PosixVolume::unlink(const std::string& path) {
    KAAS_TRY(keep_open(*shared_, path));
    if (::unlinkat(shared_->root.get(), path.c_str(), 0) != 0) return fail_errno("unlink", path);
    return {};
}

Result<void> PosixVolume::remove_directory(const std::string& path) {
    if (::unlinkat(shared_->root.get(), path.c_str(), AT_REMOVEDIR) != 0)
        return fail_errno("rmdir", path);
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
    constexpr unsigned kMode = 0644;
    auto fd = open_below(*shared_, path.c_str(), O_RDWR | O_CREAT, kMode);
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
    auto fd = open_below(*shared_, name_at_root(path), O_PATH | O_DIRECTORY);
    if (!fd) return fail_errno("open", path);
    return std::make_unique<HeldDirectory>(shared_, std::move(fd), path);
}

/// Opens what is to be marked; makes it, with mode 0, when it is truly absent. Sets `half_made`,
/// and gives no descriptor, when somebody else took the mode away and we are not root: then only
/// names can be used.
Result<base::UniqueFd> PosixVolume::open_for_mark(const std::string& path, bool& half_made) {
    constexpr int kAttempts = 3;  // a cached absence, its refutation, and the true answer
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
        auto fd = open_below(*shared_, path.c_str(), O_RDONLY | O_DIRECTORY);
        if (fd) return fd;
        if (errno == EACCES) {
            half_made = true;
            return base::UniqueFd();
        }
        if (errno != ENOENT) return fail_errno("open", path);
        if (::mkdirat(shared_->root.get(), path.c_str(), 0) == 0) {
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
        if (::unlinkat(shared_->root.get(), path.c_str(), AT_REMOVEDIR) != 0 && errno != ENOENT) {
            return fail_errno("rmdir", path);
        }
        return sync_directory(parent);
    }
    if (!half_made) return {};
    // Without a descriptor of its own, a directory's mode is made durable with the whole file
    // system. (On NFS the server has it before chmod returns.)
    if (::fchmodat(shared_->root.get(), path.c_str(), 0, 0) != 0) return fail_errno("chmod", path);
    KAAS_TRY_ASSIGN(above, open_directory(parent));
    if (shared_->honest_sync && ::syncfs(above.get()) != 0) return fail_errno("syncfs", parent);
    return sync_descriptor(above.get(), parent);
}

Result<Space> PosixVolume::space() {
    struct statvfs status;
    if (again([&] { return ::fstatvfs(shared_->root.get(), &status); }) != 0)
        return fail_errno("statvfs", root_);
    return Space{.total_bytes = std::uint64_t{status.f_blocks} * status.f_frsize,
                 .usable_bytes = std::uint64_t{status.f_bavail} * status.f_frsize};
}

}  // namespace kaas::storage
