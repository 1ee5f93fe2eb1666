#pragma once

#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace kaas::chaos {

/// A file's identity at the server: never used twice, so a handle of what is gone is stale.
using Number = std::uint64_t;
inline constexpr Number kRoot = 1;

/// Bytes that are not on the server's disk.
struct Unstable {
    int client;
    std::uint64_t offset;
    std::string bytes;
    bool lost = false;  ///< a sync of it has failed: it can be read, and never becomes durable
    [[nodiscard]] std::uint64_t end() const { return offset + bytes.size(); }
};

/// Lays what stands in `above` over what was read from `offset` on.
inline void overlay(const std::vector<Unstable>& above, std::uint64_t offset, std::string& read) {
    for (const auto& write : above) {
        const auto from = std::max(offset, write.offset);
        const auto to = std::min(offset + read.size(), write.end());
        if (from < to)
            std::memcpy(read.data() + (from - offset), write.bytes.data() + (from - write.offset),
                        to - from);
    }
}
inline std::uint64_t end_of(const std::vector<Unstable>& writes) {
    std::uint64_t end = 0;
    for (const auto& write : writes) end = std::max(end, write.end());
    return end;
}

struct Attributes {
    Number number = 0;
    mode_t mode = 0;
    std::uint64_t size = 0;
    std::uint64_t change = 0;
    timespec modified{};
    [[nodiscard]] bool is_directory() const { return S_ISDIR(mode); }
};

/// What an NFS server keeps: names, bytes, and which of both its disk has. All in memory.
/// Thread: whoever holds the world's lock. Errors are negative errnos.
class Server {
public:
    struct Inode {
        Attributes attributes;  ///< the size is that of `bytes` alone
        mode_t durable_mode = 0;
        Number parent = 0;
        std::string name;
        std::string bytes;               ///< on the disk
        std::vector<Unstable> unstable;  ///< what WRITE brought and no COMMIT has made durable
        std::map<std::string, Number> entries;
        std::map<std::string, Number> durable_entries;

        [[nodiscard]] std::uint64_t size() const {
            return std::max<std::uint64_t>(bytes.size(), end_of(unstable));
        }
    };

    Server() { make(kRoot, S_IFDIR | 0755); }

    /// None when it is gone.
    Inode* find(Number number) {
        const auto found = inodes_.find(number);
        return found == inodes_.end() ? nullptr : found->second.get();
    }

    int attributes(Number number, Attributes& found) {
        const auto* inode = find(number);
        if (inode == nullptr) return -ESTALE;
        found = inode->attributes;
        found.size = inode->size();
        return 0;
    }

    int lookup(Number parent, const std::string& name, Number& found) {
        const auto* directory = find(parent);
        if (directory == nullptr) return -ESTALE;
        const auto entry = directory->entries.find(name);
        if (entry == directory->entries.end()) return -ENOENT;
        found = entry->second;
        return 0;
    }

    /// Exclusively.
    int create(Number parent, const std::string& name, mode_t mode, Number& made) {
        auto* directory = find(parent);
        if (directory == nullptr) return -ESTALE;
        if (directory->entries.contains(name)) return -EEXIST;
        if (!fits(kBlockBytes)) return -ENOSPC;
        made = next_++;
        auto& inode = make(made, mode);
        inode.parent = parent;
        inode.name = name;
        directory->entries[name] = made;
        touch(*directory);
        return 0;
    }

    int remove(Number parent, const std::string& name) {
        Number gone = 0;
        if (const int failed = lookup(parent, name, gone); failed != 0) return failed;
        if (!find(gone)->entries.empty()) return -ENOTEMPTY;
        auto* directory = find(parent);
        directory->entries.erase(name);
        touch(*directory);
        const auto found = inodes_.find(gone);
        const auto durable = directory->durable_entries.find(name);
        if (durable != directory->durable_entries.end() && durable->second == gone)
            removed_[gone] = std::move(found->second);  // a crash may bring it back
        inodes_.erase(found);
        return 0;
    }

    int rename(Number from, const std::string& old_name, Number to, const std::string& new_name) {
        Number moved = 0;
        if (const int failed = lookup(from, old_name, moved); failed != 0) return failed;
        if (find(to) == nullptr) return -ESTALE;
        Number gone = 0;
        if (lookup(to, new_name, gone) == 0) {
            if (gone == moved) return 0;
            if (const int failed = remove(to, new_name); failed != 0) return failed;
        }
        auto* source = find(from);
        auto* target = find(to);
        source->entries.erase(old_name);
        target->entries[new_name] = moved;
        auto* inode = find(moved);
        inode->parent = to;
        inode->name = new_name;
        touch(*source);
        touch(*target);
        if (from != to) moves_.emplace_back(from, to);
        return 0;
    }

    int write(Inode& inode, Unstable write) {
        const auto before = inode.size();
        const auto after = std::max(before, write.end());
        if (blocks(after) > blocks(before) && !fits((blocks(after) - blocks(before)) * kBlockBytes))
            return -ENOSPC;
        inode.unstable.push_back(std::move(write));
        touch(inode);
        return 0;
    }

    static std::string read(const Inode& inode, std::uint64_t offset, std::uint64_t size) {
        const auto end = inode.size();
        if (offset >= end) return {};
        std::string read(std::min(size, end - offset), '\0');
        if (offset < inode.bytes.size())
            std::memcpy(read.data(), inode.bytes.data() + offset,
                        std::min<std::uint64_t>(read.size(), inode.bytes.size() - offset));
        overlay(inode.unstable, offset, read);
        return read;
    }

    static void commit(Inode& inode) {
        for (const auto& write : inode.unstable) {
            if (write.lost) continue;
            if (inode.bytes.size() < write.end()) inode.bytes.resize(write.end());
            inode.bytes.replace(write.offset, write.bytes.size(), write.bytes);
        }
        std::erase_if(inode.unstable, [](const Unstable& write) { return !write.lost; });
        inode.durable_mode = inode.attributes.mode;
    }

    void resize(Inode& inode, std::uint64_t size) {
        commit(inode);
        inode.bytes.resize(size);
        touch(inode);
    }

    static void set_mode(Inode& inode, mode_t mode) {
        inode.attributes.mode = (inode.attributes.mode & S_IFMT) | (mode & ~S_IFMT);
        ++inode.attributes.change;
    }
    static void set_modified(Inode& inode, timespec modified) {
        inode.attributes.modified = modified;
        ++inode.attributes.change;
    }

    void sync_directory(Inode& directory) {
        const auto number = directory.attributes.number;
        settle(directory);
        // What has left one directory for another is never in both, or in neither.
        for (const auto& [from, to] : moves_) {
            if (from != number && to != number) continue;
            if (auto* other = find(from == number ? to : from)) settle(*other);
        }
        std::erase_if(moves_, [&](const auto& move) {
            return move.first == number || move.second == number;
        });
    }

    /// Comes up again. Clients that live send again what is not durable; what others wrote is gone.
    void restart(const std::set<int>& dead) {
        for (auto& [number, inode] : inodes_) {
            const auto gone = std::erase_if(inode->unstable, [&](const Unstable& write) {
                return write.lost || dead.contains(write.client);
            });
            if (gone != 0) touch(*inode);
        }
    }

    /// The same for a server that lies about names: those that were not synced are undone.
    void crash(const std::set<int>& dead) {
        restart(dead);
        moves_.clear();
        for (auto& [number, inode] : inodes_) {
            inode->attributes.mode = inode->durable_mode;
            if (inode->entries == inode->durable_entries) continue;
            inode->entries = inode->durable_entries;
            touch(*inode);
        }
        for (auto& [number, inode] : removed_) inodes_.emplace(number, std::move(inode));
        removed_.clear();
        std::set<Number> reached{kRoot};
        reach(kRoot, reached);
        std::erase_if(inodes_, [&](const auto& one) { return !reached.contains(one.first); });
    }

    [[nodiscard]] std::string path(Number number) {
        const auto* inode = find(number);
        if (inode == nullptr || number == kRoot) return "";
        return path(inode->parent) + "/" + inode->name;
    }

    /// From now on no more than this fits; 0: no limit.
    void limit_to(std::uint64_t bytes) { limit_ = bytes; }
    void show_room(struct statvfs& status) {
        status.f_bsize = status.f_frsize = kBlockBytes;
        const auto limit = limit_ != 0 ? limit_ : std::uint64_t{1} << 40U;
        status.f_blocks = limit / kBlockBytes;
        status.f_bfree = status.f_bavail = (limit - std::min(limit, used())) / kBlockBytes;
        status.f_namemax = 255;
    }

private:
    static constexpr std::uint64_t kBlockBytes = 4096;

    [[nodiscard]] static std::uint64_t blocks(std::uint64_t bytes) {
        return (bytes + kBlockBytes - 1) / kBlockBytes;
    }
    [[nodiscard]] bool fits(std::uint64_t bytes) { return limit_ == 0 || used() + bytes <= limit_; }
    [[nodiscard]] std::uint64_t used() {
        std::uint64_t count = 0;
        for (const auto& [number, inode] : inodes_) count += 1 + blocks(inode->size());
        return count * kBlockBytes;
    }

    Inode& make(Number number, mode_t mode) {
        auto& inode = inodes_[number];
        inode = std::make_unique<Inode>();
        inode->attributes.number = number;
        inode->attributes.mode = inode->durable_mode = mode;
        touch(*inode);
        return *inode;
    }

    static void touch(Inode& inode) {
        ++inode.attributes.change;
        ::clock_gettime(CLOCK_REALTIME, &inode.attributes.modified);
    }

    /// What was removed cannot come back any more, nor what was in it.
    void drop(Number number) {
        const auto found = removed_.find(number);
        if (found == removed_.end()) return;
        const auto below = std::move(found->second->durable_entries);
        removed_.erase(found);
        for (const auto& [name, inner] : below) drop(inner);
    }

    void settle(Inode& directory) {
        for (const auto& [name, number] : directory.durable_entries) {
            const auto now = directory.entries.find(name);
            if (now == directory.entries.end() || now->second != number) drop(number);
        }
        directory.durable_entries = directory.entries;
        directory.durable_mode = directory.attributes.mode;
    }

    void reach(Number number, std::set<Number>& reached) {
        for (const auto& [name, below] : find(number)->entries) {
            auto* inode = find(below);
            if (inode == nullptr || !reached.insert(below).second) continue;
            inode->parent = number;
            inode->name = name;
            reach(below, reached);
        }
    }

    std::map<Number, std::unique_ptr<Inode>> inodes_;
    std::map<Number, std::unique_ptr<Inode>> removed_;
    std::vector<std::pair<Number, Number>>
        moves_;  ///< between directories, of which none is synced
    Number next_ = kRoot + 1;
    std::uint64_t limit_ = 0;
};

}  // namespace kaas::chaos
