#include "bin/local_files.h"

#include "base/log.h"
#include "base/result.h"
#include "storage/error.h"
#include "storage/posix_volume.h"
#include "storage/volume.h"

#include <fmt/format.h>

#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <ios>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace kaas::bin {

std::optional<std::string> read_file(const std::string& path, std::string& error) {
    auto fail = [&](std::error_code code) {
        error = fmt::format("{}: {}", path, code.message());
        return std::nullopt;
    };
    if (std::filesystem::is_directory(path))
        return fail(std::make_error_code(std::errc::is_a_directory));
    errno = 0;
    std::ifstream file(path, std::ios::binary);
    if (!file.is_open()) return fail(std::error_code(errno, std::generic_category()));
    std::string content{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    if (file.bad()) return fail(std::make_error_code(std::errc::io_error));
    return content;
}

std::optional<std::string> absence(const std::string& path) {
    std::error_code wrong;
    if (std::filesystem::exists(path, wrong)) return std::nullopt;
    if (!wrong) wrong = std::make_error_code(std::errc::no_such_file_or_directory);
    return fmt::format("{}: {}", path, wrong.message());
}

namespace {

constexpr const char* kPrefix = "kaas-";
constexpr const char* kLifeLine = "kaas.ephemeral";  ///< locked by the process, its pid inside

std::string temporary_root() {
    const char* root =
        std::getenv("TMPDIR");  // NOLINT(concurrency-mt-unsafe): nothing sets variables
    return root != nullptr && *root != 0 ? root : "/tmp";
}

storage::Result<std::unique_ptr<storage::FileLock>> seize(const std::string& home) {
    KAAS_TRY_ASSIGN(volume, storage::PosixVolume::open(home));
    KAAS_TRY(volume->make_directory("data"));
    return volume->lock(kLifeLine, std::to_string(::getpid()));
}

/// Whether `path` is of a process that is gone. One that has just made it, and not got to its lock,
/// has no text in the file yet.
bool is_dead(const std::string& path) {
    auto volume = storage::PosixVolume::open(path);
    if (!volume) return false;
    auto pid = storage::read_whole(**volume, kLifeLine, 64);
    return pid && !pid->empty() && (*volume)->lock(kLifeLine, *pid).has_value();
}

}  // namespace

std::vector<std::string> TemporaryDirectory::remove_dead() {
    std::vector<std::string> removed;
    std::error_code failed;
    for (std::filesystem::directory_iterator at(temporary_root(), failed), end;
         !failed && at != end; at.increment(failed)) {
        const auto path = at->path().string();
        if (!at->path().filename().string().starts_with(kPrefix) || !is_dead(path)) continue;
        std::error_code kept;
        std::filesystem::remove_all(path, kept);
        if (!kept) removed.push_back(path);
    }
    return removed;
}

std::optional<TemporaryDirectory> TemporaryDirectory::make(std::string& error) {
    std::string home = fmt::format("{}/{}XXXXXX", temporary_root(), kPrefix);
    if (::mkdtemp(home.data()) == nullptr) {
        error =
            fmt::format("{}: {}", home, std::error_code(errno, std::generic_category()).message());
        return std::nullopt;
    }
    auto lock = seize(home);
    if (!lock) {
        error = lock.error().context;
        return std::nullopt;
    }
    return TemporaryDirectory(std::move(home), std::move(*lock));
}

TemporaryDirectory::TemporaryDirectory(std::string home, std::unique_ptr<storage::FileLock> lock)
    : home_(std::move(home)), lock_(std::move(lock)) {}

TemporaryDirectory::TemporaryDirectory(TemporaryDirectory&& other) noexcept
    : home_(std::exchange(other.home_, {})), lock_(std::move(other.lock_)) {}

TemporaryDirectory& TemporaryDirectory::operator=(TemporaryDirectory&& other) noexcept {
    std::swap(home_, other.home_);
    std::swap(lock_, other.lock_);
    return *this;
}

TemporaryDirectory::~TemporaryDirectory() {
    if (home_.empty()) return;
    std::error_code failed;
    std::filesystem::remove_all(home_, failed);
    if (failed) base::log::warn("serve", "{} could not be deleted: {}", home_, failed.message());
}

}  // namespace kaas::bin
