#pragma once

#include "storage/volume.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

/// The few files of a process that lie on no volume: its configuration, and the directory of
/// `--ephemeral`.
namespace kaas::bin {

/// The content of a file, whatever it is (symbolic links, as Kubernetes mounts configuration, are
/// followed). Empty when it cannot be read; `error` then says why.
[[nodiscard]] std::optional<std::string> read_file(const std::string& path, std::string& error);

/// Says that there is nothing at `path`, and why; empty when there is something.
[[nodiscard]] std::optional<std::string> absence(const std::string& path);

/// A new directory below $TMPDIR (or /tmp), removed with all that is in it at the end of this
/// object; when the process is killed, by the next one that calls `remove_dead`.
class TemporaryDirectory {
public:
    /// Empty when it cannot be made; `error` then says why.
    [[nodiscard]] static std::optional<TemporaryDirectory> make(std::string& error);
    /// Removes what killed processes have left: directories whose lock nobody holds any more.
    /// Returns their paths.
    static std::vector<std::string> remove_dead();
    TemporaryDirectory(TemporaryDirectory&& other) noexcept;
    TemporaryDirectory& operator=(TemporaryDirectory&& other) noexcept;
    ~TemporaryDirectory();

    /// Empty at first; what shows that the process lives lies beside it.
    [[nodiscard]] std::string path() const { return home_ + "/data"; }

private:
    TemporaryDirectory(std::string home, std::unique_ptr<storage::FileLock> lock);

    std::string home_;                         ///< empty once it is moved from
    std::unique_ptr<storage::FileLock> lock_;  ///< shows that the process lives
};

}  // namespace kaas::bin
