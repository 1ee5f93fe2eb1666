#include "bin/local_files.h"

#include "base/log.h"

#include <fmt/format.h>

#include <stdlib.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <ios>
#include <iterator>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

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

std::optional<TemporaryDirectory> TemporaryDirectory::make(std::string& error) {
    const char* parent =
        std::getenv("TMPDIR");  // NOLINT(concurrency-mt-unsafe): nothing sets variables
    std::string path =
        fmt::format("{}/kaas-XXXXXX", parent != nullptr && *parent != 0 ? parent : "/tmp");
    if (::mkdtemp(path.data()) == nullptr) {
        error =
            fmt::format("{}: {}", path, std::error_code(errno, std::generic_category()).message());
        return std::nullopt;
    }
    return TemporaryDirectory(std::move(path));
}

TemporaryDirectory::TemporaryDirectory(std::string path) : path_(std::move(path)) {}

TemporaryDirectory::TemporaryDirectory(TemporaryDirectory&& other) noexcept
    : path_(std::exchange(other.path_, {})) {}

TemporaryDirectory& TemporaryDirectory::operator=(TemporaryDirectory&& other) noexcept {
    std::swap(path_, other.path_);
    return *this;
}

TemporaryDirectory::~TemporaryDirectory() {
    if (path_.empty()) return;
    std::error_code failed;
    std::filesystem::remove_all(path_, failed);
    if (failed) base::log::warn("serve", "{} could not be deleted: {}", path_, failed.message());
}

}  // namespace kaas::bin
