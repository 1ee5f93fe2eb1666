#pragma once

#include "base/bytes.h"
#include "base/result.h"
#include "storage/error.h"
#include "storage/memory_volume.h"
#include "storage/volume.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// For tests: a mount of a volume that breaks one promise, as real ones do.
namespace kaas::cluster {

enum class Lie {
    kNone,
    kCreatesTwice,           ///< O_EXCL is ignored
    kMakesDirectoriesTwice,  ///< as a path of an object store
    kLosesRaces,             ///< every creation says that somebody was faster
    kRemembersAbsence,       ///< a name once seen absent is made again
    kReadsShort,             ///< sizes from an old attribute cache
    kReadsNulls,             ///< pages that were not written through
    kSyncFails,              ///< fsync of a directory is not supported
    kSyncsNothing,           ///< answers before it could have asked
    kRemembersMarks,         ///< statx is answered by a cache
    kKeepsModes,             ///< chmod has no effect
    kKeepsTimes,             ///< utimes has no effect
    kRenamesByCopy,          ///< the old name stays
    kSillyRenames,           ///< a removed file has another name until it is closed
    kRemovesNothing,         ///< names stay for ever
    kListsShort,             ///< readdir forgets
    kListsGone,              ///< readdir remembers
    kShortNames,             ///< NAME_MAX of 143 (an encrypting layer)
    kNoLocks,                ///< local_lock=all
    kBroken,                 ///< everything is an I/O error
};

class LyingFile final : public storage::File {
public:
    LyingFile(std::unique_ptr<storage::File> file, Lie lie) : file_(std::move(file)), lie_(lie) {}

    storage::Result<void> write_at(std::uint64_t offset,
                                   std::span<const base::ByteView> pieces) override {
        return file_->write_at(offset, pieces);
    }
    storage::Result<std::size_t> read_at(std::uint64_t offset, base::MutableBytes into) override {
        KAAS_TRY_ASSIGN(got, file_->read_at(offset, into));
        if (lie_ == Lie::kReadsShort && got > 1) return got - 1;
        if (lie_ == Lie::kReadsNulls && got > 1) into[got / 2] = std::byte{0};
        return got;
    }
    storage::Result<std::size_t> try_read_at(std::uint64_t offset,
                                             base::MutableBytes into) override {
        return file_->try_read_at(offset, into);
    }
    bool cached(std::uint64_t offset, std::uint64_t length) override {
        return file_->cached(offset, length);
    }
    storage::Result<void> sync() override { return file_->sync(); }
    storage::Result<std::uint64_t> size() override { return file_->size(); }
    bool is_local() const override { return file_->is_local(); }

private:
    const std::unique_ptr<storage::File> file_;
    const Lie lie_;
};

class LyingHandle final : public storage::DirectoryHandle {
public:
    LyingHandle(std::unique_ptr<storage::DirectoryHandle> held, Lie lie)
        : held_(std::move(held)), lie_(lie) {}
    storage::Result<storage::Liveness> look() override {
        KAAS_TRY_ASSIGN(seen, held_->look());
        return lie_ == Lie::kRemembersMarks ? storage::Liveness::kAlive : seen;
    }
    storage::Result<void> beat(std::int64_t counter) override {
        if (lie_ == Lie::kKeepsTimes) return {};
        return held_->beat(counter);
    }
    storage::Result<std::int64_t> last_beat() override { return held_->last_beat(); }

private:
    const std::unique_ptr<storage::DirectoryHandle> held_;
    const Lie lie_;
};

class LyingVolume final : public storage::Volume {
public:
    /// `truth` outlives it.
    LyingVolume(storage::Volume& truth, Lie lie) : truth_(truth), lie_(lie) {}

    storage::Result<std::unique_ptr<storage::File>> create(const std::string& path) override {
        if (lie_ == Lie::kBroken) return broken();
        if (lie_ == Lie::kShortNames && path.size() - path.rfind('/') > 144) return broken();
        if (lie_ == Lie::kLosesRaces && path.contains("file-")) {
            return storage::fail(storage::ErrorCode::kExists, path);
        }
        auto made = truth_.create(path);
        if (!made && lie_ == Lie::kCreatesTwice) return open(path, storage::OpenMode::kReadWrite);
        if (!made) return made;
        return std::make_unique<LyingFile>(std::move(*made), lie_);
    }
    storage::Result<std::unique_ptr<storage::File>> create_private(
        const std::string& path) override {
        return create(path);
    }
    storage::Result<std::unique_ptr<storage::File>> open(const std::string& path,
                                                         storage::OpenMode mode) override {
        KAAS_TRY_ASSIGN(file, truth_.open(path, mode));
        return std::make_unique<LyingFile>(std::move(file), lie_);
    }
    storage::Result<void> make_directory(const std::string& path) override {
        if (lie_ == Lie::kBroken) return broken();
        auto made = truth_.make_directory(path);
        if (made || lie_ == Lie::kNone) return made;
        if (lie_ == Lie::kRemembersAbsence && absent_.contains(path)) return {};
        return lie_ == Lie::kMakesDirectoriesTwice ? storage::Result<void>() : made;
    }
    storage::Result<void> sync_directory(const std::string& path) override {
        if (lie_ == Lie::kSyncFails) return broken();
        return truth_.sync_directory(path);
    }
    storage::Result<void> rename(const std::string& from, const std::string& to) override {
        KAAS_TRY(truth_.rename(from, to));
        return lie_ == Lie::kRenamesByCopy ? truth_.make_directory(from) : storage::Result<void>();
    }
    storage::Result<void> unlink(const std::string& path) override {
        if (lie_ == Lie::kRemovesNothing && path.contains("open/")) return {};
        return truth_.unlink(path);
    }
    storage::Result<void> remove_directory(const std::string& path) override {
        return truth_.remove_directory(path);
    }
    storage::Result<std::vector<std::string>> list(const std::string& path) override {
        KAAS_TRY_ASSIGN(names, truth_.list(path));
        if (lie_ == Lie::kListsShort && !names.empty()) names.pop_back();
        if (lie_ == Lie::kListsGone && names.empty()) names.emplace_back("gone");
        if (lie_ == Lie::kSillyRenames && path.ends_with("/open") && silly_++ == 0) {
            names.emplace_back(".nfs0001");
        }
        return names;
    }
    storage::Result<std::unique_ptr<storage::FileLock>> lock(const std::string& path,
                                                             std::string_view text) override {
        return truth_.lock(lie_ == Lie::kNoLocks ? path + std::to_string(++locks_) : path, text);
    }
    storage::Result<std::unique_ptr<storage::DirectoryHandle>> hold(
        const std::string& path) override {
        auto held = truth_.hold(path);
        if (!held) {
            absent_.insert(path);
            return held;
        }
        return std::make_unique<LyingHandle>(std::move(*held), lie_);
    }
    storage::Result<void> mark(const std::string& path, storage::MarkKind kind) override {
        if (lie_ == Lie::kKeepsModes && kind == storage::MarkKind::kKeep) return {};
        return truth_.mark(path, kind);
    }
    bool is_local() const override { return lie_ != Lie::kSyncsNothing && truth_.is_local(); }
    storage::Result<storage::Space> space() override { return truth_.space(); }
    const std::string& root() const override { return truth_.root(); }

private:
    static std::unexpected<storage::Error> broken() {
        return storage::fail(storage::ErrorCode::kIo, "Input/output error");
    }

    storage::Volume& truth_;
    const Lie lie_;
    std::set<std::string> absent_;
    int silly_ = 0;
    int locks_ = 0;
};

}  // namespace kaas::cluster
