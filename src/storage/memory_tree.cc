#include "storage/memory_tree.h"

#include "base/result.h"
#include "storage/error.h"
#include "storage/memory_volume.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kaas::storage {
namespace {

std::unexpected<Error> refuse(ErrorCode code, const std::string& path, std::string_view why) {
    return fail(code, fmt::format("{}: {}", path, why));
}

void set_entry(MemoryNode::Entries& entries, const std::string& name,
               const MemoryTree::NodePtr& node) {
    if (node) {
        entries[name] = node;
    } else {
        entries.erase(name);
    }
}

void overwrite(std::string& bytes, std::uint64_t offset, std::string_view with) {
    if (bytes.size() < offset + with.size()) bytes.resize(offset + with.size());
    bytes.replace(offset, with.size(), with);
}

}  // namespace

void MemoryNode::write(std::uint64_t offset, std::string bytes) {
    overwrite(content, offset, bytes);
    unsynced.push_back({.offset = offset, .bytes = std::move(bytes)});
}

void MemoryNode::sync() {
    for (const auto& write : unsynced) overwrite(durable, write.offset, write.bytes);
    unsynced.clear();
}

/// Without a seed, everything falls to the losing side.
class MemoryTree::Dice {
public:
    explicit Dice(std::optional<std::uint64_t> seed) : seeded_(seed), engine_(seed.value_or(0)) {}
    bool coin() { return seeded_ && engine_() % 2 == 0; }
    /// 0 to `max`, the ends as often as all between.
    std::uint64_t up_to(std::uint64_t max) {
        if (!seeded_) return 0;
        switch (engine_() % 4) {
            case 0: return 0;
            case 1: return max;
            default: return engine_() % (max + 1);
        }
    }

private:
    bool seeded_;
    std::mt19937_64 engine_;
};

Result<MemoryTree::NodePtr> MemoryTree::find(const std::string& path) const {
    NodePtr node = root_;
    for (std::size_t begin = 0; begin < path.size();) {
        std::size_t slash = std::min(path.find('/', begin), path.size());
        auto name = std::string_view(path).substr(begin, slash - begin);
        begin = slash + 1;
        if (!node->directory) return refuse(ErrorCode::kIo, path, "Not a directory");
        auto found = node->entries.find(name);
        if (found == node->entries.end()) {
            return refuse(ErrorCode::kNotFound, path, "No such file or directory");
        }
        node = found->second;
    }
    return node;
}

Result<MemoryTree::NodePtr> MemoryTree::find_directory(const std::string& path) const {
    auto node = find(path);
    if (node && !(*node)->directory) return refuse(ErrorCode::kIo, path, "Not a directory");
    return node;
}

Result<MemoryTree::NodePtr> MemoryTree::find_file(const std::string& path) const {
    auto node = find(path);
    if (node && (*node)->directory) return refuse(ErrorCode::kIo, path, "Is a directory");
    return node;
}

std::uint64_t MemoryTree::block_bytes() const {
    std::uint64_t bytes = 0;
    for (std::vector<const MemoryNode*> left{root_.get()}; !left.empty();) {
        const auto* node = left.back();
        left.pop_back();
        bytes += node->directory ? kBlockBytes : blocks_of(node->content.size());
        for (const auto& [name, below] : node->entries) left.push_back(below.get());
    }
    return bytes;
}

Result<MemoryTree::NodePtr> MemoryTree::make(const std::string& path, bool directory) {
    KAAS_TRY_ASSIGN(place, place_of(path));
    if (place.directory->entries.contains(place.name)) {
        return refuse(ErrorCode::kExists, path, "File exists");
    }
    auto node = std::make_shared<MemoryNode>(directory);
    change({{{place.directory, place.name, node}}});
    return node;
}

Result<void> MemoryTree::unlink(const std::string& path) {
    KAAS_TRY_ASSIGN(node, find_file(path));
    KAAS_TRY_ASSIGN(place, place_of(path));
    change({{{place.directory, place.name, nullptr}}});
    node->linked = false;
    return {};
}

Result<void> MemoryTree::remove_directory(const std::string& path) {
    KAAS_TRY_ASSIGN(node, find_directory(path));
    if (!node->entries.empty()) return refuse(ErrorCode::kExists, path, "Directory not empty");
    KAAS_TRY_ASSIGN(place, place_of(path));
    change({{{place.directory, place.name, nullptr}}});
    node->linked = false;
    return {};
}

Result<void> MemoryTree::rename(const std::string& from, const std::string& to) {
    KAAS_TRY_ASSIGN(node, find(from));
    KAAS_TRY_ASSIGN(old_place, place_of(from));
    KAAS_TRY_ASSIGN(new_place, place_of(to));
    auto replaced = new_place.directory->entries.find(new_place.name);
    if (replaced != new_place.directory->entries.end()) {
        if (replaced->second == node) return {};
        if (replaced->second->directory != node->directory) {
            return refuse(ErrorCode::kIo, to, "Is another kind of file");
        }
        if (!replaced->second->entries.empty()) {
            return refuse(ErrorCode::kExists, to, "Directory not empty");
        }
        replaced->second->linked = false;
    }
    change({{{old_place.directory, old_place.name, nullptr},
             {new_place.directory, new_place.name, node}}});
    return {};
}

namespace {

template <class Visit>
void walk(MemoryNode& node, const Visit& visit) {
    visit(node);
    for (const auto& [name, child] : node.entries) walk(*child, visit);
}

}  // namespace

void MemoryTree::sync_all() {
    pending_.clear();
    walk(*root_, [](MemoryNode& node) {
        node.sync();
        node.durable_entries = node.entries;
        node.durable_marked = node.marked;
        node.durable_beat = node.beat;
    });
}

void MemoryTree::lose_unsynced() {
    walk(*root_, [](MemoryNode& node) {
        node.lost = node.lost || !node.unsynced.empty();
        node.unsynced.clear();
    });
}

Result<void> MemoryTree::sync_directory(const std::string& path) {
    KAAS_TRY_ASSIGN(directory, find_directory(path));
    directory->durable_marked = directory->marked;
    directory->durable_beat = directory->beat;
    std::vector<MemoryNode*> touched = {directory.get()};
    std::vector<bool> taken(pending_.size());
    for (std::size_t i = pending_.size(); i-- > 0;) {
        const auto& entries = pending_[i].entries;
        taken[i] = std::ranges::any_of(entries, [&](const auto& entry) {
            return std::ranges::find(touched, entry.directory.get()) != touched.end();
        });
        if (!taken[i]) continue;
        for (const auto& entry : entries) touched.push_back(entry.directory.get());
    }
    std::vector<NameChange> left;
    for (std::size_t i = 0; i < pending_.size(); ++i) {
        if (taken[i]) {
            make_durable(pending_[i]);
        } else {
            left.push_back(std::move(pending_[i]));
        }
    }
    pending_ = std::move(left);
    return {};
}

void MemoryTree::crash(const CrashFate& fate) {
    Dice dice(fate.seed);
    std::vector<const NameChange*> lost;
    for (const auto& change : pending_) {
        // A journal keeps the order of what concerns one name or one thing.
        bool follows_lost = std::ranges::any_of(
            lost, [&](const NameChange* earlier) { return concern_same(*earlier, change); });
        if (!follows_lost && dice.coin()) {
            make_durable(change);
        } else {
            lost.push_back(&change);
        }
    }
    pending_.clear();
    ++generation_;
    revert(*root_, fate, dice);
}

bool MemoryTree::concern_same(const NameChange& a, const NameChange& b) {
    for (const auto& x : a.entries) {
        for (const auto& y : b.entries) {
            if (x.node && x.node == y.node) return true;
            if (x.directory == y.directory && x.name == y.name) return true;
        }
    }
    return false;
}

Result<MemoryTree::Place> MemoryTree::place_of(const std::string& path) const {
    auto slash = path.rfind('/');
    std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
    KAAS_TRY_ASSIGN(parent,
                    find_directory(slash == std::string::npos ? "" : path.substr(0, slash)));
    if (name.empty()) return refuse(ErrorCode::kExists, path, "File exists");
    return Place{.directory = std::move(parent), .name = std::move(name)};
}

void MemoryTree::change(NameChange change) {
    for (const auto& entry : change.entries) {
        set_entry(entry.directory->entries, entry.name, entry.node);
    }
    pending_.push_back(std::move(change));
}

void MemoryTree::make_durable(const NameChange& change) {
    for (const auto& entry : change.entries) {
        set_entry(entry.directory->durable_entries, entry.name, entry.node);
    }
}

void MemoryTree::revert(MemoryNode& node, const CrashFate& fate, Dice& dice) {
    node.linked = true;
    node.locked = false;
    if (!node.directory) return revert_file(node, fate, dice);
    if (node.marked != node.durable_marked && !dice.coin()) node.marked = node.durable_marked;
    node.durable_marked = node.marked;
    node.beat = node.durable_beat;
    for (const auto& [name, child] : node.entries) child->linked = false;
    node.entries = node.durable_entries;
    for (const auto& [name, child] : node.entries) revert(*child, fate, dice);
}

void MemoryTree::keep_prefix(MemoryNode& node, Dice& dice) {
    std::uint64_t unsynced_bytes = 0;
    for (const auto& write : node.unsynced) unsynced_bytes += write.bytes.size();
    std::uint64_t kept = dice.up_to(unsynced_bytes);
    for (const auto& write : node.unsynced) {
        auto part = std::string_view(write.bytes).substr(0, kept);
        kept -= part.size();
        if (!part.empty()) overwrite(node.durable, write.offset, part);
    }
    if (dice.coin() && node.durable.size() < node.content.size()) {
        node.durable.resize(node.content.size());
    }
}

void MemoryTree::keep_pages(MemoryNode& node, Dice& dice) {
    // Small ones, so that what a test writes spans a few.
    const std::uint64_t page_bytes = std::uint64_t{1} << dice.up_to(9);
    std::map<std::uint64_t, std::size_t> writes_kept;  // by page: the first so many are on the disk
    for (std::size_t i = 0; i < node.unsynced.size(); ++i) {
        const auto& write = node.unsynced[i];
        for (std::uint64_t at = 0; at < write.bytes.size();) {
            const auto offset = write.offset + at;
            const auto page = offset / page_bytes;
            auto part = std::string_view(write.bytes).substr(at, (page + 1) * page_bytes - offset);
            const auto [kept, is_new] = writes_kept.try_emplace(page);
            if (is_new) kept->second = dice.up_to(node.unsynced.size());
            if (i < kept->second) overwrite(node.durable, offset, part);
            at += part.size();
        }
    }
}

void MemoryTree::revert_file(MemoryNode& node, const CrashFate& fate, Dice& dice) {
    node.lost = false;
    if (fate.holes) {
        keep_pages(node, dice);
    } else {
        keep_prefix(node, dice);
    }
    node.unsynced.clear();
    node.content = node.durable;
}

}  // namespace kaas::storage
