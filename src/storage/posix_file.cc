#include "storage/posix_file.h"

#include "base/mutex.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "storage/error.h"

#include <fmt/format.h>

#include <asm-generic/errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>

namespace kaas::storage {
namespace {

ErrorCode code_of(int error) {
    switch (error) {
        case ENOENT: return ErrorCode::kNotFound;
        case EEXIST:
        case ENOTEMPTY: return ErrorCode::kExists;
        case ENOSPC:
        case EDQUOT:
        case EFBIG: return ErrorCode::kNoSpace;
        case EMFILE:
        case ENFILE: return ErrorCode::kTooManyOpen;
        default: return ErrorCode::kIo;
    }
}

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

constexpr std::size_t kMaxPieces = 1024;  // IOV_MAX of Linux

constexpr std::uint64_t kReadAheadBytes = 256 * 1024;
constexpr std::uint64_t kSmallestReadAheadBytes = 64 * 1024;

/// What is in memory of a file from `offset` on. Negative: the error is in errno.
[[nodiscard]] ssize_t read_cached(int fd, std::uint64_t offset, base::MutableBytes into) {
    std::size_t done = 0;
    while (done < into.size()) {
        iovec rest{into.data() + done, into.size() - done};
        ssize_t got = again(
            [&] { return ::preadv2(fd, &rest, 1, static_cast<off_t>(offset + done), RWF_NOWAIT); });
        // EOPNOTSUPP: this file system cannot say; the caller then reads where it may block.
        if (got < 0 && (errno == EAGAIN || errno == EOPNOTSUPP)) break;
        if (got < 0) return got;
        if (got == 0) break;
        done += static_cast<std::size_t>(got);
    }
    return static_cast<ssize_t>(done);
}

/// Reads one byte each `stride`, and the last: a wrong "yes" costs one wait.
[[nodiscard]] bool probe(int fd, std::uint64_t offset, std::uint64_t length, std::uint64_t stride) {
    std::byte byte;
    for (std::uint64_t at = 0; at < length; at += stride) {
        if (read_cached(fd, offset + at, {&byte, 1}) <= 0) return false;
    }
    return read_cached(fd, offset + length - 1, {&byte, 1}) == 1;
}

}  // namespace

std::unexpected<Error> fail_errno(std::string_view call, const std::string& path, int error) {
    return fail(code_of(error),
                fmt::format("{} {}: {}", call, path, std::generic_category().message(error)));
}

base::UniqueFd open_below(PosixShared& shared, const char* path, int flags, unsigned mode) {
    const auto open = [&] {
        return base::UniqueFd(again([&] {
            return ::openat(shared.root.get(), path, flags | O_CLOEXEC | O_NOFOLLOW, mode);
        }));
    };
    auto fd = open();
    while (!fd && errno == EMFILE && shared.descriptors->close_one()) fd = open();
    return fd;
}

PosixFile::PosixFile(std::shared_ptr<PosixShared> shared, std::string path, int flags)
    : shared_(std::move(shared)), flags_(flags & ~(O_CREAT | O_EXCL)), path_(std::move(path)) {}

Result<std::shared_ptr<PosixFile>> PosixFile::open(std::shared_ptr<PosixShared> shared,
                                                   const std::string& path, int flags,
                                                   unsigned mode) {
    std::shared_ptr<PosixFile> file(new PosixFile(std::move(shared), path, flags));
    KAAS_TRY(file->open_first(flags, mode));
    return file;
}

Result<void> PosixFile::open_first(int flags, unsigned mode) {
    const auto name = path();
    auto fd = open_below(*shared_, name.c_str(), flags, mode);
    if (!fd) return fail_call("open");
    struct stat status;
    if (::fstat(fd.get(), &status) != 0) return fail_call("stat");
    inode_ = status.st_ino;
    {
        base::MutexLock lock(mutex_);
        lease_ = std::make_shared<const base::UniqueFd>(std::move(fd));
    }
    {
        base::MutexLock lock(shared_->mutex);
        enter_files();
    }
    shared_->descriptors->enter(*this);
    return {};
}

PosixFile::~PosixFile() {
    {
        base::MutexLock lock(shared_->mutex);
        leave_files();
    }
    shared_->descriptors->leave(*this);
}

Lease PosixFile::descriptor_if_open() {
    base::MutexLock lock(mutex_);
    touch();
    return lease_;
}

Result<Lease> PosixFile::descriptor() {
    bool gone = false;
    return open_again(gone);
}

Result<Lease> PosixFile::descriptor_unless_gone() {
    bool gone = false;
    auto lease = open_again(gone);
    if (gone) return nullptr;
    return lease;
}

Result<Lease> PosixFile::open_again(bool& gone) {
    if (auto lease = descriptor_if_open()) return lease;
    auto fd = open_below(*shared_, path().c_str(), flags_);
    if (!fd) {
        gone = errno == ENOENT;
        return fail_call("open");
    }
    struct stat status;
    if (::fstat(fd.get(), &status) != 0) return fail_call("stat");
    if (status.st_ino != inode_) {
        gone = true;
        return fail(ErrorCode::kIo, fmt::format("open {}: it is another file now", path()));
    }
    Lease mine = std::make_shared<const base::UniqueFd>(std::move(fd));
    {
        base::MutexLock lock(mutex_);
        if (lease_ != nullptr) return lease_;  // somebody was faster
        lease_ = mine;
    }
    shared_->descriptors->enter(*this);
    return mine;
}

std::string PosixFile::path() const {
    base::MutexLock lock(mutex_);
    return path_;
}

std::optional<Error> PosixFile::failure() const {
    base::MutexLock lock(mutex_);
    return failure_ != nullptr ? std::optional(*failure_) : std::nullopt;
}

void PosixFile::count_write() {
    base::MutexLock lock(mutex_);
    ++writes_;
}

Result<Lease> PosixFile::descriptor_to_write() {
    auto lease = descriptor();
    if (lease) count_write();  // under the lease: nobody closes it in between
    // It may have been closed, and opened anew, because of a failed sync.
    if (auto failed = failure()) return std::unexpected(std::move(*failed));
    return lease;
}

Result<void> PosixFile::write_at(std::uint64_t offset, std::span<const base::ByteView> pieces) {
    Timed timed(shared_->write_latency);
    KAAS_TRY_ASSIGN(lease, descriptor_to_write());
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
            return ::pwritev(lease->get(), batch.data(), static_cast<int>(count),
                             static_cast<off_t>(offset));
        });
        if (done < 0) return fail_call("write");
        offset += static_cast<std::uint64_t>(done);
        auto left = static_cast<std::size_t>(done);
        std::size_t before = next;
        while (next < pieces.size() && left >= pieces[next].size() - written) {
            left -= pieces[next].size() - written;
            written = 0;
            ++next;
        }
        written += left;
        if (done == 0 && next == before) return fail_call("write", EIO);
    }
    count_write();  // a sync that ran meanwhile has not seen all of it
    return {};
}

Result<std::size_t> PosixFile::read_at(std::uint64_t offset, base::MutableBytes into) {
    Timed timed(shared_->read_latency);
    KAAS_TRY_ASSIGN(lease, descriptor());
    std::size_t done = 0;
    while (done < into.size()) {
        ssize_t got = again([&] {
            return ::pread(lease->get(), into.data() + done, into.size() - done,
                           static_cast<off_t>(offset + done));
        });
        if (got < 0) return fail_call("read");
        if (got == 0) break;
        done += static_cast<std::size_t>(got);
    }
    return done;
}

Result<std::size_t> PosixFile::try_read_at(std::uint64_t offset, base::MutableBytes into) {
    const auto lease = descriptor_if_open();
    if (lease == nullptr) return 0;  // to open it may take a disk
    const auto got = read_cached(lease->get(), offset, into);
    if (got < 0) return fail_call("read");
    return static_cast<std::size_t>(got);
}

bool PosixFile::cached(std::uint64_t offset, std::uint64_t length) {
    if (length == 0) return true;
    const auto lease = descriptor_if_open();
    if (lease == nullptr) return false;
    static const auto page_bytes = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    CacheRange range{offset, length};
    CacheStat stat{};
    if (::syscall(kCachestatCall, lease->get(), &range, &stat, 0U) == 0) {
        if (stat.cached < (offset + length - 1) / page_bytes - offset / page_bytes + 1)
            return false;
        // It counts pages that are still on their way from the disk, too; read-ahead fills
        // them in order.
        return probe(lease->get(), offset, length, kReadAheadBytes);
    }
    return probe(lease->get(), offset, length, kSmallestReadAheadBytes);
}

Result<void> PosixFile::sync() {
    if (auto failed = failure()) return std::unexpected(std::move(*failed));
    KAAS_TRY_ASSIGN(lease, descriptor());
    return sync_descriptor(lease->get());
}

void PosixFile::all_sync_begins() {
    base::MutexLock lock(mutex_);
    all_synced_ = writes_;
}

void PosixFile::all_sync_ended(const Result<void>& outcome) {
    base::MutexLock lock(mutex_);
    if (outcome) {
        // It may have been opened meanwhile, and a sync of its own may have seen more.
        if (synced_ != writes_) synced_ = all_synced_;
    } else if (synced_ != writes_ && failure_ == nullptr) {
        failure_ = std::make_unique<const Error>(outcome.error());
    }
}

Result<void> PosixFile::sync_descriptor(int descriptor) {
    base::MutexLock one(sync_mutex_);
    std::uint32_t writes = 0;
    {
        // After a failure elsewhere a descriptor may be a new one, which knows nothing of it.
        base::MutexLock lock(mutex_);
        if (failure_ != nullptr) return std::unexpected(*failure_);
        writes = writes_;
    }
    Result<void> outcome;
    if (shared_->honest_sync) {
        Timed timed(shared_->fsync_latency);
        // Not again(): after any failure, EINTR included, the kernel may have dropped the dirty
        // pages.
        if (shared_->datasync(descriptor) != 0) outcome = fail_call("fdatasync");
    }
    base::MutexLock lock(mutex_);
    if (failure_ != nullptr) return std::unexpected(*failure_);  // of a sync of everything
    if (outcome) {
        synced_ = writes;
    } else {
        failure_ = std::make_unique<const Error>(outcome.error());
    }
    return outcome;
}

Result<std::uint64_t> PosixFile::size() {
    KAAS_TRY_ASSIGN(lease, descriptor());
    struct stat status;
    if (::fstat(lease->get(), &status) != 0) return fail_call("stat");
    return static_cast<std::uint64_t>(status.st_size);
}

Result<void> PosixFile::keep_open() {
    {
        base::MutexLock lock(mutex_);
        kept_ = true;
    }
    KAAS_TRY(descriptor_unless_gone());
    return {};
}

void PosixFile::renamed(const std::string& path) {
    base::MutexLock shared_lock(shared_->mutex);
    leave_files();
    {
        base::MutexLock lock(mutex_);
        path_ = path;
    }
    enter_files();
}

void PosixFile::enter_files() {
    base::MutexLock lock(mutex_);
    shared_->files.emplace(path_, this);
}

void PosixFile::leave_files() {
    base::MutexLock lock(mutex_);
    const auto [from, to] = shared_->files.equal_range(path_);
    const auto mine = std::find_if(from, to, [&](const auto& e) { return e.second == this; });
    if (mine != to) shared_->files.erase(mine);
}

bool PosixFile::close_clean() {
    base::MutexLock lock(mutex_);
    if (kept_ || in_use() || writes_ != synced_) return false;
    lease_.reset();
    return true;
}

bool PosixFile::close_dirty() {
    Lease lease;
    {
        base::MutexLock lock(mutex_);
        if (kept_ || in_use()) return false;
        lease = lease_;
    }
    // What goes wrong here is kept for those who write to it.
    if (lease != nullptr) std::ignore = sync_descriptor(lease->get());
    lease.reset();
    base::MutexLock lock(mutex_);
    if (kept_ || in_use() || (writes_ != synced_ && failure_ == nullptr)) return false;
    lease_.reset();
    return true;
}

PosixFiles files_of(PosixShared& shared, const std::string& path) {
    PosixFiles found;
    base::MutexLock lock(shared.mutex);
    const auto [from, to] = shared.files.equal_range(path);
    for (auto entry = from; entry != to; ++entry) {
        // One that is about to end needs nothing any more.
        if (auto file = entry->second->weak_from_this().lock()) found.push_back(std::move(file));
    }
    return found;
}

Result<void> keep_open(PosixShared& shared, const std::string& path) {
    for (const auto& file : files_of(shared, path)) KAAS_TRY(file->keep_open());
    return {};
}

Result<void> sync_all(PosixShared& shared, const std::string& root) {
    // One at a time: what a file had written when it began is kept in the file.
    base::MutexLock one(shared.sync_all_mutex);
    if (shared.sync_all_failed) {
        return fail(ErrorCode::kIo, root + ": an earlier sync of everything has failed");
    }
    {
        base::MutexLock lock(shared.mutex);
        for (const auto& [path, file] : shared.files) file->all_sync_begins();
    }
    Result<void> outcome;
    {
        Timed timed(shared.fsync_latency);
        if (shared.sync_whole(shared.whole.get()) != 0) outcome = fail_errno("syncfs", root);
    }
    shared.sync_all_failed = !outcome;
    base::MutexLock lock(shared.mutex);
    for (const auto& [path, file] : shared.files) file->all_sync_ended(outcome);
    return outcome;
}

}  // namespace kaas::storage
