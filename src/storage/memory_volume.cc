#include "storage/memory_volume.h"

#include "base/assert.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <random>
#include <utility>

namespace kaas::storage {
namespace {

struct PendingWrite {
    std::uint64_t offset;
    std::string bytes;
};

struct Node {
    explicit Node(bool is_directory) : directory(is_directory) {}

    using Entries = std::map<std::string, std::shared_ptr<Node>, std::less<>>;

    bool directory;
    bool linked = true;  ///< some name leads here

    // A file: what readers see, what is durable, and how to get from there to here.
    std::string content;
    std::string durable;
    std::vector<PendingWrite> unsynced;
    bool locked = false;

    // A directory.
    Entries entries;
    Entries durable_entries;
    bool marked = false;
    bool durable_marked = false;
    std::int64_t beat = 0;
    std::int64_t durable_beat = 0;
};

using NodePtr = std::shared_ptr<Node>;

/// One atomic change of names that is not durable yet: a rename sets two.
struct NameChange {
    struct Entry {
        NodePtr directory;
        std::string name;
        NodePtr node;  ///< none: the name is removed
    };
    std::vector<Entry> entries;
};

bool concern_same(const NameChange& a, const NameChange& b) {
    for (const auto& x : a.entries) {
        for (const auto& y : b.entries) {
            if (x.node && x.node == y.node) return true;
            if (x.directory == y.directory && x.name == y.name) return true;
        }
    }
    return false;
}

void set_entry(Node::Entries& entries, const std::string& name, const NodePtr& node) {
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

std::unexpected<Error> refuse(ErrorCode code, const std::string& path, std::string_view why) {
    return fail(code, fmt::format("{}: {}", path, why));
}

}  // namespace

std::string_view name_of(Operation operation) {
    switch (operation) {
        case Operation::kCreate: return "create";
        case Operation::kOpen: return "open";
        case Operation::kMakeDirectory: return "mkdir";
        case Operation::kSyncDirectory: return "fsync directory";
        case Operation::kRename: return "rename";
        case Operation::kUnlink: return "unlink";
        case Operation::kRemoveDirectory: return "rmdir";
        case Operation::kList: return "list";
        case Operation::kLock: return "lock";
        case Operation::kHold: return "hold";
        case Operation::kMark: return "chmod 0";
        case Operation::kLook: return "look";
        case Operation::kBeat: return "beat";
        case Operation::kWrite: return "write";
        case Operation::kRead: return "read";
        case Operation::kSync: return "fdatasync";
        case Operation::kSize: return "size";
    }
    return "?";
}

/// The state of the volume, without faults, steps or locks.
class MemoryVolume::Tree {
public:
    [[nodiscard]] std::uint64_t generation() const { return generation_; }

    Result<NodePtr> find(const std::string& path) const {
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

    Result<NodePtr> find_directory(const std::string& path) const {
        auto node = find(path);
        if (node && !(*node)->directory) return refuse(ErrorCode::kIo, path, "Not a directory");
        return node;
    }

    Result<NodePtr> find_file(const std::string& path) const {
        auto node = find(path);
        if (node && (*node)->directory) return refuse(ErrorCode::kIo, path, "Is a directory");
        return node;
    }

    Result<NodePtr> make(const std::string& path, bool directory) {
        KAAS_TRY_ASSIGN(place, place_of(path));
        if (place.directory->entries.contains(place.name)) {
            return refuse(ErrorCode::kExists, path, "File exists");
        }
        auto node = std::make_shared<Node>(directory);
        change({{{place.directory, place.name, node}}});
        return node;
    }

    Result<void> unlink(const std::string& path) {
        KAAS_TRY_ASSIGN(node, find_file(path));
        KAAS_TRY_ASSIGN(place, place_of(path));
        change({{{place.directory, place.name, nullptr}}});
        node->linked = false;
        return {};
    }

    Result<void> remove_directory(const std::string& path) {
        KAAS_TRY_ASSIGN(node, find_directory(path));
        if (!node->entries.empty()) return refuse(ErrorCode::kIo, path, "Directory not empty");
        KAAS_TRY_ASSIGN(place, place_of(path));
        change({{{place.directory, place.name, nullptr}}});
        node->linked = false;
        return {};
    }

    Result<void> rename(const std::string& from, const std::string& to) {
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
                return refuse(ErrorCode::kIo, to, "Directory not empty");
            }
            replaced->second->linked = false;
        }
        change({{{old_place.directory, old_place.name, nullptr},
                 {new_place.directory, new_place.name, node}}});
        return {};
    }

    /// Makes every change of this directory's names durable, and what a journal would have to write
    /// before.
    Result<void> sync_directory(const std::string& path) {
        KAAS_TRY_ASSIGN(directory, find_directory(path));
        directory->durable_marked = directory->marked;
        directory->durable_beat = directory->beat;
        std::vector<Node*> touched = {directory.get()};
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

    static void sync_file(Node& node) {
        for (const auto& write : node.unsynced) overwrite(node.durable, write.offset, write.bytes);
        node.unsynced.clear();
    }

    void crash(const CrashFate& fate) {
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

private:
    /// Without a seed, everything falls to the losing side.
    class Dice {
    public:
        explicit Dice(std::optional<std::uint64_t> seed)
            : seeded_(seed), engine_(seed.value_or(0)) {}
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

    struct Place {
        NodePtr directory;
        std::string name;
    };

    Result<Place> place_of(const std::string& path) const {
        auto slash = path.rfind('/');
        std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
        KAAS_TRY_ASSIGN(parent,
                        find_directory(slash == std::string::npos ? "" : path.substr(0, slash)));
        if (name.empty()) return refuse(ErrorCode::kExists, path, "File exists");
        // A removed directory, still held, takes no new names; the path would not have led to it.
        return Place{.directory = std::move(parent), .name = std::move(name)};
    }

    void change(NameChange change) {
        for (const auto& entry : change.entries) {
            set_entry(entry.directory->entries, entry.name, entry.node);
        }
        pending_.push_back(std::move(change));
    }

    static void make_durable(const NameChange& change) {
        for (const auto& entry : change.entries) {
            set_entry(entry.directory->durable_entries, entry.name, entry.node);
        }
    }

    void revert(Node& node, const CrashFate& fate, Dice& dice) {
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

    static void revert_file(Node& node, const CrashFate& fate, Dice& dice) {
        std::uint64_t unsynced_bytes = 0;
        for (const auto& write : node.unsynced) unsynced_bytes += write.bytes.size();
        std::uint64_t kept = fate.holes ? unsynced_bytes : dice.up_to(unsynced_bytes);
        for (const auto& write : node.unsynced) {
            if (fate.holes && !dice.coin()) continue;
            auto part = std::string_view(write.bytes).substr(0, kept);
            kept -= part.size();
            if (!part.empty()) overwrite(node.durable, write.offset, part);
        }
        if (!fate.holes && dice.coin() && node.durable.size() < node.content.size()) {
            node.durable.resize(node.content.size());
        }
        node.unsynced.clear();
        node.content = node.durable;
    }

    NodePtr root_ = std::make_shared<Node>(true);
    std::vector<NameChange> pending_;
    std::uint64_t generation_ = 0;
};

/// What was decided about one step.
class MemoryVolume::Attempt {
public:
    Attempt(std::optional<Fault> fault, Operation operation, const std::string& path)
        : fault_(fault), operation_(operation), path_(path) {}

    /// True when the step has no effect; `error` then is its answer.
    [[nodiscard]] bool refused() const { return fault_ && fault_->effect != Fault::Effect::kWhole; }
    [[nodiscard]] bool half() const { return fault_ && fault_->effect == Fault::Effect::kHalf; }
    [[nodiscard]] std::unexpected<Error> error() const {
        return fail(fault_->code, fmt::format("{} {}: injected", name_of(operation_), path_));
    }
    /// The answer to a step that had its effect: perhaps lost.
    template <class T>
    [[nodiscard]] Result<T> answer(Result<T> result) const {
        if (fault_ && result) return error();
        return result;
    }

private:
    std::optional<Fault> fault_;
    Operation operation_;
    const std::string& path_;
};

class MemoryVolume::OpenFile final : public File {
public:
    OpenFile(MemoryVolume& volume, std::string path, NodePtr node, OpenMode mode,
             std::uint64_t generation)
        : volume_(volume),
          path_(std::move(path)),
          node_(std::move(node)),
          mode_(mode),
          generation_(generation) {}

    Result<void> write_at(std::uint64_t offset, std::span<const base::ByteView> pieces) override {
        Attempt attempt = volume_.begin(Operation::kWrite, path_);
        if (attempt.refused() && !attempt.half()) return attempt.error();
        base::MutexLock lock(volume_.mutex_);
        KAAS_TRY(still_mine());
        if (mode_ == OpenMode::kRead) return refuse(ErrorCode::kIo, path_, "Bad file descriptor");
        std::string bytes;
        for (const auto& piece : pieces) bytes += base::as_text(piece);
        if (attempt.half()) bytes.resize(bytes.size() / 2);
        overwrite(node_->content, offset, bytes);
        node_->unsynced.push_back({.offset = offset, .bytes = std::move(bytes)});
        return attempt.answer<void>({});
    }

    Result<std::size_t> read_at(std::uint64_t offset, base::MutableBytes into) override {
        Attempt attempt = volume_.begin(Operation::kRead, path_);
        if (attempt.refused()) return attempt.error();
        base::MutexLock lock(volume_.mutex_);
        KAAS_TRY(still_mine());
        return attempt.answer(Result<std::size_t>(copy(offset, into)));
    }

    Result<std::size_t> try_read_at(std::uint64_t offset, base::MutableBytes into) override {
        base::MutexLock lock(volume_.mutex_);
        KAAS_TRY(still_mine());
        return volume_.cached_ ? copy(offset, into) : 0;
    }

    bool cached(std::uint64_t offset, std::uint64_t length) override {
        base::MutexLock lock(volume_.mutex_);
        return volume_.cached_ && still_mine() && offset + length <= node_->content.size();
    }

    Result<void> sync() override {
        Attempt attempt = volume_.begin(Operation::kSync, path_);
        base::MutexLock lock(volume_.mutex_);
        KAAS_TRY(still_mine());
        if (attempt.refused()) {
            node_->unsynced.clear();  // readable, and lost
            return attempt.error();
        }
        if (!volume_.lies_about(Operation::kSync)) Tree::sync_file(*node_);
        return attempt.answer<void>({});
    }

    Result<std::uint64_t> size() override {
        Attempt attempt = volume_.begin(Operation::kSize, path_);
        if (attempt.refused()) return attempt.error();
        base::MutexLock lock(volume_.mutex_);
        KAAS_TRY(still_mine());
        return attempt.answer(Result<std::uint64_t>(node_->content.size()));
    }

    int descriptor() const override { return -1; }
    bool is_local() const override { return volume_.is_local(); }

private:
    Result<void> still_mine() const KAAS_REQUIRES(volume_.mutex_) {
        if (generation_ == volume_.tree_->generation()) return {};
        return refuse(ErrorCode::kIo, path_, "opened before the machine died");
    }

    std::size_t copy(std::uint64_t offset, base::MutableBytes into) const {
        if (offset >= node_->content.size()) return 0;
        auto part = std::string_view(node_->content).substr(offset, into.size());
        std::ranges::copy(base::as_bytes(part), into.begin());
        return part.size();
    }

    MemoryVolume& volume_;
    const std::string path_;
    const NodePtr node_;
    const OpenMode mode_;
    const std::uint64_t generation_;
};

class MemoryVolume::HeldDirectory final : public DirectoryHandle {
public:
    HeldDirectory(MemoryVolume& volume, std::string path, NodePtr node, std::uint64_t generation)
        : volume_(volume),
          path_(std::move(path)),
          node_(std::move(node)),
          generation_(generation) {}

    Result<Liveness> look() override {
        Attempt attempt = volume_.begin(Operation::kLook, path_);
        if (attempt.refused()) return attempt.error();
        base::MutexLock lock(volume_.mutex_);
        KAAS_TRY(still_mine());
        bool marked = node_->marked || !node_->linked;
        return attempt.answer(Result<Liveness>(marked ? Liveness::kMarked : Liveness::kAlive));
    }

    Result<void> beat(std::int64_t counter) override {
        Attempt attempt = volume_.begin(Operation::kBeat, path_);
        if (attempt.refused()) return attempt.error();
        base::MutexLock lock(volume_.mutex_);
        KAAS_TRY(still_mine());
        node_->beat = counter;
        return attempt.answer<void>({});
    }

    Result<std::int64_t> last_beat() override {
        Attempt attempt = volume_.begin(Operation::kLook, path_);
        if (attempt.refused()) return attempt.error();
        base::MutexLock lock(volume_.mutex_);
        KAAS_TRY(still_mine());
        return attempt.answer(Result<std::int64_t>(node_->beat));
    }

private:
    Result<void> still_mine() const KAAS_REQUIRES(volume_.mutex_) {
        if (generation_ == volume_.tree_->generation()) return {};
        return refuse(ErrorCode::kIo, path_, "held before the machine died");
    }

    MemoryVolume& volume_;
    const std::string path_;
    const NodePtr node_;
    const std::uint64_t generation_;
};

class MemoryVolume::HeldLock final : public FileLock {
public:
    HeldLock(MemoryVolume& volume, NodePtr node, std::uint64_t generation)
        : volume_(volume), node_(std::move(node)), generation_(generation) {}
    ~HeldLock() override {
        base::MutexLock lock(volume_.mutex_);
        if (generation_ == volume_.tree_->generation()) node_->locked = false;
    }

private:
    MemoryVolume& volume_;
    const NodePtr node_;
    const std::uint64_t generation_;
};

MemoryVolume::MemoryVolume(std::string root)
    : root_(std::move(root)), tree_(std::make_unique<Tree>()) {}
MemoryVolume::~MemoryVolume() = default;

void MemoryVolume::set_hook(Hook hook) {
    base::MutexLock lock(mutex_);
    hook_ = std::move(hook);
}

void MemoryVolume::fail_nth(Operation operation, std::uint64_t nth, Fault fault) {
    KAAS_ASSERT(nth > 0);
    base::MutexLock lock(mutex_);
    planned_.push_back({.operation = operation, .countdown = nth, .fault = fault});
}

void MemoryVolume::lie_about(Operation sync) {
    KAAS_ASSERT(sync == Operation::kSync || sync == Operation::kSyncDirectory);
    base::MutexLock lock(mutex_);
    lies_.push_back(sync);
}

bool MemoryVolume::lies_about(Operation sync) const {
    return std::ranges::find(lies_, sync) != lies_.end();
}

void MemoryVolume::halt_at(std::uint64_t number) {
    base::MutexLock lock(mutex_);
    halt_at_ = number;
}

std::uint64_t MemoryVolume::steps() const {
    base::MutexLock lock(mutex_);
    return steps_;
}

void MemoryVolume::crash(CrashFate fate) {
    base::MutexLock lock(mutex_);
    tree_->crash(fate);
    halt_at_.reset();
    planned_.clear();
}

void MemoryVolume::set_local(bool local) {
    base::MutexLock lock(mutex_);
    local_ = local;
}

void MemoryVolume::set_cached(bool cached) {
    base::MutexLock lock(mutex_);
    cached_ = cached;
}

void MemoryVolume::set_space(Space space) {
    base::MutexLock lock(mutex_);
    space_ = space;
}

MemoryVolume::Attempt MemoryVolume::begin(Operation operation, const std::string& path) {
    Hook hook;
    Step step{.number = 0, .operation = operation, .path = path};
    {
        base::MutexLock lock(mutex_);
        step.number = steps_++;
        if (halt_at_ && step.number >= *halt_at_) return {Fault{}, operation, path};
        for (auto planned = planned_.begin(); planned != planned_.end(); ++planned) {
            if (planned->operation != operation || --planned->countdown > 0) continue;
            Fault fault = planned->fault;
            planned_.erase(planned);
            return {fault, operation, path};
        }
        hook = hook_;
    }
    return {hook ? hook(step) : std::nullopt, operation, path};
}

Result<std::unique_ptr<File>> MemoryVolume::create(const std::string& path) {
    Attempt attempt = begin(Operation::kCreate, path);
    if (attempt.refused()) return attempt.error();
    base::MutexLock lock(mutex_);
    KAAS_TRY_ASSIGN(node, tree_->make(path, false));
    return attempt.answer<std::unique_ptr<File>>(std::make_unique<OpenFile>(
        *this, path, std::move(node), OpenMode::kReadWrite, tree_->generation()));
}

Result<std::unique_ptr<File>> MemoryVolume::open(const std::string& path, OpenMode mode) {
    Attempt attempt = begin(Operation::kOpen, path);
    if (attempt.refused()) return attempt.error();
    base::MutexLock lock(mutex_);
    KAAS_TRY_ASSIGN(node, tree_->find_file(path));
    return attempt.answer<std::unique_ptr<File>>(
        std::make_unique<OpenFile>(*this, path, std::move(node), mode, tree_->generation()));
}

Result<void> MemoryVolume::make_directory(const std::string& path) {
    Attempt attempt = begin(Operation::kMakeDirectory, path);
    if (attempt.refused()) return attempt.error();
    base::MutexLock lock(mutex_);
    KAAS_TRY(tree_->make(path, true));
    return attempt.answer<void>({});
}

Result<void> MemoryVolume::sync_directory(const std::string& path) {
    Attempt attempt = begin(Operation::kSyncDirectory, path);
    if (attempt.refused()) return attempt.error();
    base::MutexLock lock(mutex_);
    if (lies_about(Operation::kSyncDirectory)) return {};
    return attempt.answer(tree_->sync_directory(path));
}

Result<void> MemoryVolume::rename(const std::string& from, const std::string& to) {
    Attempt attempt = begin(Operation::kRename, from);
    if (attempt.refused()) return attempt.error();
    base::MutexLock lock(mutex_);
    return attempt.answer(tree_->rename(from, to));
}

Result<void> MemoryVolume::unlink(const std::string& path) {
    Attempt attempt = begin(Operation::kUnlink, path);
    if (attempt.refused()) return attempt.error();
    base::MutexLock lock(mutex_);
    return attempt.answer(tree_->unlink(path));
}

Result<void> MemoryVolume::remove_directory(const std::string& path) {
    Attempt attempt = begin(Operation::kRemoveDirectory, path);
    if (attempt.refused()) return attempt.error();
    base::MutexLock lock(mutex_);
    return attempt.answer(tree_->remove_directory(path));
}

Result<std::vector<std::string>> MemoryVolume::list(const std::string& path) {
    Attempt attempt = begin(Operation::kList, path);
    if (attempt.refused()) return attempt.error();
    base::MutexLock lock(mutex_);
    KAAS_TRY_ASSIGN(directory, tree_->find_directory(path));
    std::vector<std::string> names;
    for (const auto& [name, node] : directory->entries) names.push_back(name);
    return attempt.answer(Result<std::vector<std::string>>(std::move(names)));
}

Result<std::unique_ptr<FileLock>> MemoryVolume::lock(const std::string& path,
                                                     std::string_view text) {
    Attempt attempt = begin(Operation::kLock, path);
    if (attempt.refused()) return attempt.error();
    base::MutexLock lock(mutex_);
    auto node = tree_->find_file(path);
    if (!node && node.error().code == ErrorCode::kNotFound) node = tree_->make(path, false);
    if (!node) return std::unexpected(node.error());
    if ((*node)->locked) return fail(ErrorCode::kLocked, (*node)->content);
    (*node)->locked = true;
    (*node)->content = text;
    return attempt.answer<std::unique_ptr<FileLock>>(
        std::make_unique<HeldLock>(*this, *node, tree_->generation()));
}

Result<std::unique_ptr<DirectoryHandle>> MemoryVolume::hold(const std::string& path) {
    Attempt attempt = begin(Operation::kHold, path);
    if (attempt.refused()) return attempt.error();
    base::MutexLock lock(mutex_);
    KAAS_TRY_ASSIGN(node, tree_->find_directory(path));
    return attempt.answer<std::unique_ptr<DirectoryHandle>>(
        std::make_unique<HeldDirectory>(*this, path, std::move(node), tree_->generation()));
}

/// Takes the same steps as a real volume, each of which can be the last.
Result<void> MemoryVolume::mark(const std::string& path, MarkKind kind) {
    Attempt attempt = begin(Operation::kMark, path);
    if (attempt.refused()) return attempt.error();
    {
        base::MutexLock lock(mutex_);
        auto node = tree_->find_directory(path);
        if (!node && node.error().code == ErrorCode::kNotFound) node = tree_->make(path, true);
        if (!node) return std::unexpected(node.error());
        (*node)->marked = true;
        KAAS_TRY(attempt.answer<void>({}));
    }
    return end_mark(path, kind);
}

Result<void> MemoryVolume::end_mark(const std::string& path, MarkKind kind) {
    auto slash = path.rfind('/');
    std::string parent = slash == std::string::npos ? "" : path.substr(0, slash);
    KAAS_TRY(sync_directory(path));
    if (kind == MarkKind::kRemove) KAAS_TRY(remove_directory(path));
    return sync_directory(parent);
}

bool MemoryVolume::is_local() const {
    base::MutexLock lock(mutex_);
    return local_;
}

Result<Space> MemoryVolume::space() {
    base::MutexLock lock(mutex_);
    return space_;
}

}  // namespace kaas::storage
