#pragma once

#include "storage/volume.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kaas::storage::testing {

/// One of the hosts that share a volume: what it writes lies in its own memory until it is synced,
/// or until the host pushes it out when it likes to, as with NFS. The others see names at once and
/// bytes only then. Thread: one at a time.
class HostVolume final : public Volume {
public:
    explicit HostVolume(Volume& shared) : shared_(shared) {}

    /// Pushes the writes out for which `picked` says so, in any order: what a taker elsewhere sees
    /// of a file may have holes.
    void push_out(const std::function<bool(const std::string& path)>& picked) {
        for (const auto& [path, cache] : caches_) {
            std::erase_if(cache->dirty, [&](const Write& write) {
                if (!picked(path)) return false;
                const base::ByteView piece = base::as_bytes(write.bytes);
                return cache->shared->write_at(write.offset, {&piece, 1}).has_value();
            });
        }
    }

    Result<std::unique_ptr<File>> create(const std::string& path) override {
        KAAS_TRY_ASSIGN(file, shared_.create(path));
        return wrap(path, std::move(file));
    }
    Result<std::unique_ptr<File>> create_private(const std::string& path) override {
        KAAS_TRY_ASSIGN(file, shared_.create_private(path));
        return wrap(path, std::move(file));
    }
    Result<std::unique_ptr<File>> open(const std::string& path, OpenMode mode) override {
        KAAS_TRY_ASSIGN(file, shared_.open(path, mode));
        return wrap(path, std::move(file));
    }
    Result<void> make_directory(const std::string& path) override {
        return shared_.make_directory(path);
    }
    Result<void> sync_directory(const std::string& path) override {
        return shared_.sync_directory(path);
    }
    Result<void> rename(const std::string& from, const std::string& to) override {
        KAAS_TRY(shared_.rename(from, to));
        if (auto moved = caches_.extract(from)) {
            caches_.erase(to);
            moved.key() = to;
            caches_.insert(std::move(moved));
        }
        return {};
    }
    Result<void> unlink(const std::string& path) override {
        caches_.erase(path);
        return shared_.unlink(path);
    }
    Result<void> remove_directory(const std::string& path) override {
        return shared_.remove_directory(path);
    }
    Result<std::vector<std::string>> list(const std::string& path) override {
        return shared_.list(path);
    }
    Result<std::unique_ptr<FileLock>> lock(const std::string& path,
                                           std::string_view text) override {
        return shared_.lock(path, text);
    }
    Result<std::unique_ptr<DirectoryHandle>> hold(const std::string& path) override {
        return shared_.hold(path);
    }
    Result<void> mark(const std::string& path, MarkKind kind) override {
        return shared_.mark(path, kind);
    }
    bool is_local() const override { return shared_.is_local(); }
    Result<Space> space() override { return shared_.space(); }
    const std::string& root() const override { return shared_.root(); }

private:
    struct Write {
        std::uint64_t offset;
        std::string bytes;
    };
    struct Cache {
        std::shared_ptr<File> shared;  ///< who pushes out
        std::vector<Write> dirty;
    };

    class HostFile final : public File {
    public:
        HostFile(std::shared_ptr<File> shared, std::shared_ptr<Cache> cache, bool local)
            : shared_(std::move(shared)), cache_(std::move(cache)), local_(local) {}

        Result<void> write_at(std::uint64_t offset,
                              std::span<const base::ByteView> pieces) override {
            for (const auto& piece : pieces) {
                cache_->dirty.push_back({offset, std::string(base::as_text(piece))});
                offset += piece.size();
            }
            cache_->shared = shared_;
            return {};
        }
        Result<std::size_t> read_at(std::uint64_t offset, base::MutableBytes into) override {
            KAAS_TRY_ASSIGN(known, size());
            const auto bytes =
                std::min<std::uint64_t>(into.size(), known - std::min(known, offset));
            std::memset(into.data(), 0, into.size());
            KAAS_TRY(shared_->read_at(offset, into.first(bytes)));
            for (const auto& write : cache_->dirty) {
                const auto from = std::max(offset, write.offset);
                const auto to = std::min(offset + bytes, write.offset + write.bytes.size());
                if (from >= to) continue;
                std::memcpy(into.data() + (from - offset),
                            write.bytes.data() + (from - write.offset), to - from);
            }
            return bytes;
        }
        Result<std::size_t> try_read_at(std::uint64_t offset, base::MutableBytes into) override {
            return read_at(offset, into);
        }
        bool cached(std::uint64_t /*offset*/, std::uint64_t /*length*/) override { return true; }
        Result<void> sync() override {
            for (const auto& write : std::exchange(cache_->dirty, {})) {
                const base::ByteView piece = base::as_bytes(write.bytes);
                KAAS_TRY(shared_->write_at(write.offset, {&piece, 1}));
            }
            return shared_->sync();
        }
        Result<std::uint64_t> size() override {
            KAAS_TRY_ASSIGN(bytes, shared_->size());
            for (const auto& write : cache_->dirty) {
                bytes = std::max<std::uint64_t>(bytes, write.offset + write.bytes.size());
            }
            return bytes;
        }
        bool is_local() const override { return local_; }

    private:
        const std::shared_ptr<File> shared_;
        const std::shared_ptr<Cache> cache_;
        const bool local_;
    };

    std::unique_ptr<File> wrap(const std::string& path, std::unique_ptr<File> file) {
        auto& cache = caches_[path];
        if (cache == nullptr) cache = std::make_shared<Cache>();
        return std::make_unique<HostFile>(std::move(file), cache, is_local());
    }

    Volume& shared_;
    std::map<std::string, std::shared_ptr<Cache>> caches_;
};

}  // namespace kaas::storage::testing
