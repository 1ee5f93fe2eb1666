#pragma once

#include "base/metrics.h"
#include "base/unique_fd.h"
#include "storage/descriptor_cache.h"
#include "storage/mount.h"
#include "storage/volume.h"

#include <memory>
#include <optional>
#include <string>

namespace kaas::storage {

struct PosixVolumeOptions {
    /// False only for `--ephemeral`: `File::sync`, `sync_directory` and marks then skip their
    /// fsync(2) and promise nothing across a crash of the machine.
    bool honest_sync = true;
    /// Makes the root and what is missing above it. Only where no mount is expected (standalone):
    /// on a shared volume, a missing root is a missing mount.
    bool create_root = false;
    /// Where `kaas_storage_{write,read,fsync}_latency_seconds` are kept; must outlive the volume.
    base::metrics::Registry* metrics = nullptr;
    /// Bounds how many files are open, together with other volumes; none: a thousand of its own.
    std::shared_ptr<DescriptorCache> descriptors{};
};

struct PosixShared;

/// A directory of the operating system, mounted from wherever.
///
/// Owns a descriptor of its root and makes every call relative to it, so the tree may be moved or
/// mounted over without harm to those who use it. Symbolic links below the root are not followed at
/// the last name.
class PosixVolume final : public Volume {
public:
    [[nodiscard]] static Result<std::unique_ptr<PosixVolume>> open(const std::string& root,
                                                                   PosixVolumeOptions options = {});
    ~PosixVolume() override;

    /// Whether the two are one directory, under whatever names.
    [[nodiscard]] bool same_directory(const PosixVolume& other) const;
    /// How it is mounted; none where the kernel does not say (before Linux 5.8).
    [[nodiscard]] std::optional<Mount> mount() const;

    [[nodiscard]] Result<std::unique_ptr<File>> create(const std::string& path) override;
    [[nodiscard]] Result<std::unique_ptr<File>> create_private(const std::string& path) override;
    [[nodiscard]] Result<std::unique_ptr<File>> open(const std::string& path,
                                                     OpenMode mode) override;
    [[nodiscard]] Result<void> make_directory(const std::string& path) override;
    [[nodiscard]] Result<void> sync_directory(const std::string& path) override;
    [[nodiscard]] bool can_sync_all() const override;
    [[nodiscard]] Result<void> sync_all() override;
    [[nodiscard]] Result<void> rename(const std::string& from, const std::string& to) override;
    [[nodiscard]] Result<void> unlink(const std::string& path) override;
    [[nodiscard]] Result<void> remove_directory(const std::string& path) override;
    [[nodiscard]] Result<std::vector<std::string>> list(const std::string& path) override;
    [[nodiscard]] Result<std::unique_ptr<FileLock>> lock(const std::string& path,
                                                         std::string_view text) override;

    [[nodiscard]] Result<std::unique_ptr<DirectoryHandle>> hold(const std::string& path) override;
    [[nodiscard]] Result<void> mark(const std::string& path, MarkKind kind) override;

    [[nodiscard]] bool is_local() const override;
    [[nodiscard]] Result<Space> space() override;
    [[nodiscard]] const std::string& root() const override { return root_; }

private:
    PosixVolume(std::string root, std::shared_ptr<PosixShared> shared);

    [[nodiscard]] Result<base::UniqueFd> open_directory(const std::string& path) const;
    [[nodiscard]] Result<base::UniqueFd> open_for_mark(const std::string& path, bool& half_made);
    [[nodiscard]] Result<void> sync_descriptor(int fd, const std::string& path) const;

    const std::string root_;
    const std::shared_ptr<PosixShared> shared_;
};

}  // namespace kaas::storage
