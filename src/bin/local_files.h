#pragma once

#include <optional>
#include <string>

/// The few files of a process that lie on no volume: its configuration, and the directory of
/// `--ephemeral`.
namespace kaas::bin {

/// The content of a file, whatever it is (symbolic links, as Kubernetes mounts configuration, are
/// followed). Empty when it cannot be read; `error` then says why.
[[nodiscard]] std::optional<std::string> read_file(const std::string& path, std::string& error);

/// Says that there is nothing at `path`, and why; empty when there is something.
[[nodiscard]] std::optional<std::string> absence(const std::string& path);

/// A new directory below $TMPDIR (or /tmp), removed with all that is in it at the end of this
/// object.
class TemporaryDirectory {
public:
    /// Empty when it cannot be made; `error` then says why.
    [[nodiscard]] static std::optional<TemporaryDirectory> make(std::string& error);
    TemporaryDirectory(TemporaryDirectory&& other) noexcept;
    TemporaryDirectory& operator=(TemporaryDirectory&& other) noexcept;
    ~TemporaryDirectory();

    [[nodiscard]] const std::string& path() const { return path_; }

private:
    explicit TemporaryDirectory(std::string path);

    std::string path_;  ///< empty once it is moved from
};

}  // namespace kaas::bin
