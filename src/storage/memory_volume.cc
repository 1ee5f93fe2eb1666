#include "storage/memory_volume.h"

#include "base/assert.h"
#include "base/bytes.h"
#include "base/mutex.h"
#include "base/result.h"
#include "storage/error.h"
#include "storage/memory_tree.h"
#include "storage/volume.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kaas::storage {
namespace {

std::unexpected<Error> refuse(ErrorCode code, const std::string& path, std::string_view why) {
    return fail(code, fmt::format("{}: {}", path, why));
}

using NodePtr = MemoryTree::NodePtr;

}  // namespace

std::string_view name_of(Operation operation) {
    switch (operation) {
        case Operation::kCreate: return "create";
        case Operation::kOpen: return "open";
        case Operation::kMakeDirectory: return "mkdir";
        case Operation::kSyncDirectory: return "fsync directory";
        case Operation::kSyncAll: return "syncfs";
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

/// What was decided about one step.
class MemoryVolume::Attempt {
public:
    Attempt(std::optional<Fault> fault, Operation operation, const std::string& path)
        : fault_(fault), operation_(operation), path_(path) {}
    /// Of a machine that is dead already.
    [[nodiscard]] static Attempt halted(Operation operation, const std::string& path) {
        Attempt attempt(Fault{}, operation, path);
        attempt.halted_ = true;
        return attempt;
    }

    /// True when the step has no effect; `error` then is its answer.
    [[nodiscard]] bool refused() const { return fault_ && fault_->effect != Fault::Effect::kWhole; }
    /// True for a sync that failed: what it was to make durable is lost. When the machine was dead
    /// before, the crash says what becomes of that.
    [[nodiscard]] bool loses_unsynced() const { return refused() && !halted_; }
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
    bool halted_ = false;
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
        const auto more = blocks_of(std::max(node_->content.size(), offset + bytes.size())) -
                          blocks_of(node_->content.size());
        KAAS_TRY(volume_.check_room(path_, more));
        node_->write(offset, std::move(bytes));
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
        if (attempt.loses_unsynced()) node_->unsynced.clear();  // readable, and lost
        if (attempt.refused()) return attempt.error();
        if (node_->lost) return refuse(ErrorCode::kIo, path_, "a sync of everything has failed");
        if (!volume_.lies_about(Operation::kSync)) node_->sync();
        return attempt.answer<void>({});
    }

    Result<std::uint64_t> size() override {
        Attempt attempt = volume_.begin(Operation::kSize, path_);
        if (attempt.refused()) return attempt.error();
        base::MutexLock lock(volume_.mutex_);
        KAAS_TRY(still_mine());
        return attempt.answer(Result<std::uint64_t>(node_->content.size()));
    }

    bool is_local() const override { return volume_.is_local(); }
    std::string path() const override { return path_; }

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
    : root_(std::move(root)), tree_(std::make_unique<MemoryTree>()) {}
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
    KAAS_ASSERT(sync == Operation::kSync || sync == Operation::kSyncDirectory ||
                sync == Operation::kSyncAll);
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
    sync_all_failed_ = false;
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

void MemoryVolume::limit_to(std::uint64_t bytes) {
    base::MutexLock lock(mutex_);
    limit_ = bytes;
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
        if (halt_at_ && step.number >= *halt_at_) return Attempt::halted(operation, path);
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

Result<std::unique_ptr<File>> MemoryVolume::create_private(const std::string& path) {
    return create(path);  // there is but one user
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
    KAAS_TRY(check_room(path, kBlockBytes));
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

bool MemoryVolume::can_sync_all() const {
    base::MutexLock lock(mutex_);
    return local_ && !sync_all_failed_;
}

Result<void> MemoryVolume::sync_all() {
    Attempt attempt = begin(Operation::kSyncAll, root_);
    base::MutexLock lock(mutex_);
    if (sync_all_failed_) return refuse(ErrorCode::kIo, root_, "an earlier one has failed");
    if (attempt.loses_unsynced()) tree_->lose_unsynced();
    if (!attempt.refused() && !lies_about(Operation::kSyncAll)) tree_->sync_all();
    auto answer = attempt.refused() ? attempt.error() : attempt.answer<void>({});
    sync_all_failed_ = !answer;
    return answer;
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

Result<void> MemoryVolume::check_room(const std::string& path, std::uint64_t bytes) const {
    if (!limit_ || bytes == 0 || tree_->block_bytes() + bytes <= *limit_) return {};
    return refuse(ErrorCode::kNoSpace, path, "No space left on device");
}

Result<Space> MemoryVolume::space() {
    base::MutexLock lock(mutex_);
    if (!limit_) return space_;
    const auto used = std::min(*limit_, tree_->block_bytes());
    return Space{.total_bytes = *limit_, .usable_bytes = *limit_ - used};
}

}  // namespace kaas::storage
