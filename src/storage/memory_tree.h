#pragma once

#include "storage/error.h"
#include "storage/memory_volume.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace kaas::storage {

/// What a file's bytes take of a volume with a limit: whole blocks, as on a disk.
inline constexpr std::uint64_t kBlockBytes = 4096;
[[nodiscard]] inline std::uint64_t blocks_of(std::uint64_t bytes) {
    return (bytes + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
}

/// A file or directory of a `MemoryTree`: what its users see, and what of it is durable.
struct MemoryNode {
    explicit MemoryNode(bool is_directory) : directory(is_directory) {}

    using Entries = std::map<std::string, std::shared_ptr<MemoryNode>, std::less<>>;
    struct PendingWrite {
        std::uint64_t offset;
        std::string bytes;
    };

    void write(std::uint64_t offset, std::string bytes);
    /// Makes every write so far durable.
    void sync();

    bool directory;
    bool linked = true;  ///< some name leads here

    // A file: what readers see, what is durable, and how to get from there to here.
    std::string content;
    std::string durable;
    std::vector<PendingWrite> unsynced;
    bool lost = false;  ///< to a failed sync of everything
    bool locked = false;

    // A directory.
    Entries entries;
    Entries durable_entries;
    bool marked = false;
    bool durable_marked = false;
    std::int64_t beat = 0;
    std::int64_t durable_beat = 0;
};

/// The state of a `MemoryVolume`, without its faults, steps and lock.
/// Thread: one at a time.
class MemoryTree {
public:
    using NodePtr = std::shared_ptr<MemoryNode>;

    /// Counts the crashes: what was opened under an older one belongs to a dead machine.
    [[nodiscard]] std::uint64_t generation() const { return generation_; }

    [[nodiscard]] Result<NodePtr> find(const std::string& path) const;
    [[nodiscard]] Result<NodePtr> find_directory(const std::string& path) const;
    [[nodiscard]] Result<NodePtr> find_file(const std::string& path) const;

    /// What everything takes together: a block for each directory, those of their bytes for files.
    [[nodiscard]] std::uint64_t block_bytes() const;

    [[nodiscard]] Result<NodePtr> make(const std::string& path, bool directory);
    [[nodiscard]] Result<void> unlink(const std::string& path);
    [[nodiscard]] Result<void> remove_directory(const std::string& path);
    [[nodiscard]] Result<void> rename(const std::string& from, const std::string& to);

    /// Makes every change of this directory's names durable, and what a journal would have to write
    /// before.
    [[nodiscard]] Result<void> sync_directory(const std::string& path);
    /// The same for all directories, and makes what was written to every file durable.
    void sync_all();
    /// What was written and not synced stays readable, and no later sync makes it durable, nor says
    /// that it did.
    void lose_unsynced();
    void crash(const CrashFate& fate);

private:
    class Dice;
    struct Place {
        NodePtr directory;
        std::string name;
    };
    /// One atomic change of names that is not durable yet: a rename sets two.
    struct NameChange {
        struct Entry {
            NodePtr directory;
            std::string name;
            NodePtr node;  ///< none: the name is removed
        };
        std::vector<Entry> entries;
    };

    [[nodiscard]] static bool concern_same(const NameChange& a, const NameChange& b);
    [[nodiscard]] Result<Place> place_of(const std::string& path) const;
    void change(NameChange change);
    static void make_durable(const NameChange& change);
    static void revert(MemoryNode& node, const CrashFate& fate, Dice& dice);
    static void revert_file(MemoryNode& node, const CrashFate& fate, Dice& dice);
    static void keep_prefix(MemoryNode& node, Dice& dice);
    static void keep_pages(MemoryNode& node, Dice& dice);

    NodePtr root_ = std::make_shared<MemoryNode>(true);
    std::vector<NameChange> pending_;
    std::uint64_t generation_ = 0;
};

}  // namespace kaas::storage
