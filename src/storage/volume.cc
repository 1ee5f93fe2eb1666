#include "storage/volume.h"

#include "base/bytes.h"
#include "base/result.h"
#include "storage/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace kaas::storage {

Result<std::unique_ptr<File>> create_or_reopen(Volume& volume, const std::string& path) {
    auto made = volume.create(path);
    if (made || made.error().code != ErrorCode::kExists) return made;
    return volume.open(path, OpenMode::kReadWrite);
}

Result<void> make_directory_if_missing(Volume& volume, const std::string& path) {
    return unless(ErrorCode::kExists, volume.make_directory(path));
}

Result<void> remove_tree(Volume& volume, const std::string& path) {
    auto names = volume.list(path);
    if (!names) return unless(ErrorCode::kNotFound, volume.unlink(path));  // most likely a file
    for (const auto& name : *names) KAAS_TRY(remove_tree(volume, path + "/" + name));
    return unless(ErrorCode::kNotFound, volume.remove_directory(path));
}

Result<void> probe_writes(Volume& volume, const std::string& name) {
    // One that a crash has left says nothing about today.
    KAAS_TRY(unless(ErrorCode::kNotFound, volume.unlink(name)));
    const auto write = [&]() -> Result<void> {
        // More than the first steps of an epoch take, and little for a disk.
        constexpr std::size_t kBytes = 256 * 1024;
        KAAS_TRY_ASSIGN(file, volume.create(name));
        const std::vector<std::byte> bytes(kBytes, std::byte{0x6b});
        const base::ByteView piece(bytes);
        KAAS_TRY(file->write_at(0, {&piece, 1}));
        KAAS_TRY(file->sync());
        return volume.sync_directory("");
    };
    auto written = write();
    auto removed = unless(ErrorCode::kNotFound, volume.unlink(name));
    return written ? removed : written;
}

Result<std::string> read_whole(Volume& volume, const std::string& path, std::size_t limit_bytes) {
    KAAS_TRY_ASSIGN(file, volume.open(path, OpenMode::kRead));
    KAAS_TRY_ASSIGN(size, file->size());
    constexpr std::size_t kGrowth = 64 * 1024;
    // The size is a first guess: an attribute may be cached, and the file may grow.
    std::string text;
    std::size_t filled = 0;
    std::size_t chunk = std::min<std::size_t>(size + 1, limit_bytes + 1);
    while (true) {
        text.resize(filled + chunk);
        auto into = std::as_writable_bytes(std::span(text.data() + filled, chunk));
        KAAS_TRY_ASSIGN(got, file->read_at(filled, into));
        filled += got;
        if (filled > limit_bytes) {
            return fail(ErrorCode::kCorrupt,
                        fmt::format("{}: longer than {} bytes", path, limit_bytes));
        }
        if (got < chunk) break;
        chunk = std::min<std::size_t>(kGrowth, limit_bytes + 1 - filled);
    }
    text.resize(filled);
    return text;
}

}  // namespace kaas::storage
