#pragma once

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace kaas::chaos {

namespace fs = std::filesystem;

/// What FUSE wants to hear of a system call.
inline int outcome(int result) { return result < 0 ? -errno : 0; }

/// A file: its bytes in the backing directory are the durable ones, those above them are not.
struct Node {
    struct Write {
        std::uint64_t offset;
        std::string bytes;
        bool lost;  ///< a sync of it has failed
        [[nodiscard]] std::uint64_t end() const { return offset + bytes.size(); }
    };

    explicit Node(int opened) : fd(opened) {}
    ~Node() { ::close(fd); }
    Node(const Node&) = delete;
    Node& operator=(const Node&) = delete;

    [[nodiscard]] std::uint64_t size_above(std::uint64_t durable) const {
        auto size = durable;
        for (const auto& write : unsynced) size = std::max(size, write.end());
        return size;
    }

    const int fd;
    std::vector<Write> unsynced;
};

/// An open file.
struct Handle {
    std::shared_ptr<Node> node;
    std::string path;  ///< by which it was opened
};

/// The durable state in the backing directory, and what stands above it. Thread: any.
class Disk {
public:
    explicit Disk(std::string backing)
        : backing_(std::move(backing)), trash_(backing_ + "/.chaosfs-removed") {
        fs::create_directories(trash_);
    }

    [[nodiscard]] std::string real(const std::string& path) const { return backing_ + path; }

    /// Opens the backing file. `flags` may have O_CREAT and O_EXCL. Gives a negative errno.
    int open(const std::string& path, int flags, mode_t mode, std::shared_ptr<Node>& node) {
        const std::lock_guard lock(mutex_);
        const bool was_there = fs::exists(real(path));
        if (!was_there && !fits(kBlockBytes)) return -ENOSPC;
        const int fd =
            ::open(real(path).c_str(), O_RDWR | O_CLOEXEC | (flags & (O_CREAT | O_EXCL)), mode);
        if (fd < 0) return -errno;
        node = node_of(fd);
        if (!was_there) changes_.push_back({.path = path});
        return 0;
    }

    int read(Node& node, char* into, std::size_t size, std::uint64_t offset) {
        const std::lock_guard lock(mutex_);
        const auto end = size_of(node);
        if (offset >= end) return 0;
        size = std::min<std::uint64_t>(size, end - offset);
        std::memset(into, 0, size);
        if (::pread(node.fd, into, size, static_cast<off_t>(offset)) < 0) return -errno;
        for (const auto& write : node.unsynced) {
            const auto from = std::max(offset, write.offset);
            const auto to = std::min(offset + size, write.end());
            if (from < to)
                std::memcpy(into + (from - offset), write.bytes.data() + (from - write.offset),
                            to - from);
        }
        return static_cast<int>(size);
    }

    int write(Node& node, std::string bytes, std::uint64_t offset) {
        const std::lock_guard lock(mutex_);
        const auto size = size_of(node);
        const auto end = std::max(size, offset + bytes.size());
        if (blocks(end) > blocks(size) && !fits((blocks(end) - blocks(size)) * kBlockBytes))
            return -ENOSPC;
        node.unsynced.push_back({.offset = offset, .bytes = std::move(bytes), .lost = false});
        return 0;
    }

    /// From now on no more than this fits; 0: as much as the backing directory takes.
    void limit_to(std::uint64_t bytes) {
        const std::lock_guard lock(mutex_);
        limit_ = bytes;
    }
    void show_room(struct statvfs* status) {
        const std::lock_guard lock(mutex_);
        if (limit_ == 0) return;
        status->f_bsize = status->f_frsize = kBlockBytes;
        status->f_blocks = limit_ / kBlockBytes;
        status->f_bfree = status->f_bavail = (limit_ - std::min(limit_, used())) / kBlockBytes;
    }

    int sync(Node& node) {
        const std::lock_guard lock(mutex_);
        return sync_locked(node);
    }
    /// A sync that fails: nothing of it is ever written.
    void lose(Node& node) {
        const std::lock_guard lock(mutex_);
        for (auto& write : node.unsynced) write.lost = true;
    }

    int resize(Node& node, off_t size) {
        const std::lock_guard lock(mutex_);
        if (const int failed = sync_locked(node); failed != 0) return failed;
        return outcome(::ftruncate(node.fd, size));
    }

    int attributes(const std::string& path, struct stat* status) {
        if (::lstat(real(path).c_str(), status) != 0) return -errno;
        const std::lock_guard lock(mutex_);
        const auto known = nodes_.find(status->st_ino);
        if (known == nodes_.end()) return 0;
        const auto above = known->second->size_above(static_cast<std::uint64_t>(status->st_size));
        status->st_size = static_cast<off_t>(above);
        return 0;
    }
    int attributes(const Node& node, struct stat* status) {
        const std::lock_guard lock(mutex_);
        if (::fstat(node.fd, status) != 0) return -errno;
        status->st_size = static_cast<off_t>(size_of(node));
        return 0;
    }

    // ---- Names: done at once, and undone by a cut until their directory is synced.

    int make_directory(const std::string& path, mode_t mode) {
        const std::lock_guard lock(mutex_);
        if (!fits(kBlockBytes)) return -ENOSPC;
        if (::mkdir(real(path).c_str(), mode) != 0) return -errno;
        changes_.push_back({.path = path});
        return 0;
    }

    int remove(const std::string& path, bool directory) {
        const std::lock_guard lock(mutex_);
        if (directory && fs::exists(real(path)) && !fs::is_empty(real(path))) return -ENOTEMPTY;
        const auto kept = fmt::format("{}/{}", trash_, next_removed_++);
        if (::rename(real(path).c_str(), kept.c_str()) != 0) return -errno;
        changes_.push_back({.path = path, .kept = kept});
        return 0;
    }

    int rename(const std::string& from, const std::string& to) {
        const std::lock_guard lock(mutex_);
        std::string kept;
        if (fs::exists(real(to))) {
            kept = fmt::format("{}/{}", trash_, next_removed_++);
            if (::rename(real(to).c_str(), kept.c_str()) != 0) return -errno;
        }
        if (::rename(real(from).c_str(), real(to).c_str()) != 0) return -errno;
        changes_.push_back({.path = to, .from = from, .kept = kept});
        return 0;
    }

    void sync_directory(const std::string& path) {
        const std::lock_guard lock(mutex_);
        for (std::size_t i = 0; i < changes_.size();) {
            if (!changes_[i].concerns(path)) {
                ++i;
                continue;
            }
            const auto done = changes_[i];
            changes_.erase(changes_.begin() + static_cast<std::ptrdiff_t>(i));
            if (!done.kept.empty()) forget(done.kept);
            // What happened below a directory before it was moved has happened below its new name.
            if (!done.from.empty()) {
                for (std::size_t j = 0; j < i; ++j) changes_[j].move(done.from, done.path);
            }
        }
    }

    /// The power fails.
    void lose_unsynced() {
        const std::lock_guard lock(mutex_);
        for (auto& [number, node] : nodes_) node->unsynced.clear();
        nodes_.clear();
        while (!changes_.empty()) {
            undo(changes_.back());
            changes_.pop_back();
        }
    }

private:
    static constexpr std::uint64_t kBlockBytes = 4096;

    [[nodiscard]] static std::uint64_t blocks(std::uint64_t bytes) {
        return (bytes + kBlockBytes - 1) / kBlockBytes;
    }
    [[nodiscard]] bool fits(std::uint64_t bytes) { return limit_ == 0 || used() + bytes <= limit_; }
    /// A block for each name, and those of the bytes. What is removed takes none, durably or not.
    [[nodiscard]] std::uint64_t used() {
        std::uint64_t count = 0;
        std::error_code ignored;  // what goes meanwhile takes nothing
        for (auto entry = fs::recursive_directory_iterator(backing_, ignored);
             entry != fs::recursive_directory_iterator(); entry.increment(ignored)) {
            if (entry->path() == trash_) {
                entry.disable_recursion_pending();
                continue;
            }
            struct stat status{};
            if (::lstat(entry->path().c_str(), &status) != 0) continue;
            ++count;
            if (!S_ISREG(status.st_mode)) continue;
            auto size = static_cast<std::uint64_t>(status.st_size);
            const auto known = nodes_.find(status.st_ino);
            if (known != nodes_.end()) size = known->second->size_above(size);
            count += blocks(size);
        }
        return count * kBlockBytes;
    }

    /// A change of names that is not durable yet: something was made, moved or removed at `path`.
    struct Change {
        std::string path;
        std::string from{};  ///< moved from here
        std::string kept{};  ///< what was at `path` before lies here

        [[nodiscard]] bool concerns(const std::string& directory) const {
            const auto parent = [](const std::string& name) {
                const auto slash = name.rfind('/');
                return slash == 0 ? std::string("/") : name.substr(0, slash);
            };
            return parent(path) == directory || (!from.empty() && parent(from) == directory);
        }
        void move(const std::string& old_name, const std::string& new_name) {
            for (auto* name : {&path, &from}) {
                if (name->starts_with(old_name + "/")) name->replace(0, old_name.size(), new_name);
            }
        }
    };

    [[nodiscard]] std::shared_ptr<Node> node_of(int fd) {
        struct stat status{};
        ::fstat(fd, &status);
        auto& node = nodes_[status.st_ino];
        if (node == nullptr) {
            node = std::make_shared<Node>(fd);
        } else {
            ::close(fd);
        }
        return node;
    }

    [[nodiscard]] static std::uint64_t size_of(const Node& node) {
        struct stat status{};
        ::fstat(node.fd, &status);
        return node.size_above(static_cast<std::uint64_t>(status.st_size));
    }

    static int sync_locked(Node& node) {
        for (const auto& write : node.unsynced) {
            if (write.lost) continue;
            if (::pwrite(node.fd, write.bytes.data(), write.bytes.size(),
                         static_cast<off_t>(write.offset)) < 0)
                return -errno;
        }
        std::erase_if(node.unsynced, [](const Node::Write& write) { return !write.lost; });
        return 0;
    }

    void undo(const Change& change) {
        std::error_code ignored;  // what is not there any more needs no undoing
        if (!change.from.empty()) {
            fs::rename(real(change.path), real(change.from), ignored);
        } else if (change.kept.empty()) {
            fs::remove_all(real(change.path), ignored);
        }
        if (!change.kept.empty()) fs::rename(change.kept, real(change.path), ignored);
    }

    void forget(const std::string& removed) {
        struct stat status{};
        if (::lstat(removed.c_str(), &status) == 0) nodes_.erase(status.st_ino);
        std::error_code ignored;
        fs::remove_all(removed, ignored);
    }

    const std::string backing_;
    const std::string trash_;
    std::mutex mutex_;
    std::map<ino_t, std::shared_ptr<Node>> nodes_;
    std::deque<Change> changes_;
    std::uint64_t next_removed_ = 0;
    std::uint64_t limit_ = 0;
};

}  // namespace kaas::chaos
