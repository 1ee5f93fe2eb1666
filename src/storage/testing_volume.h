#pragma once

#include "base/bytes.h"
#include "storage/volume.h"

#include <gtest/gtest.h>

#include <stdlib.h>

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

/// What tests of volumes share.
namespace kaas::storage::testing {

/// A fresh directory of the machine's own, removed in the end.
class TemporaryDirectory {
public:
    TemporaryDirectory()
        : path_((std::filesystem::temp_directory_path() / "kaas_test_XXXXXX").string()) {
        EXPECT_NE(::mkdtemp(path_.data()), nullptr);
    }
    ~TemporaryDirectory() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    TemporaryDirectory(const TemporaryDirectory&) = delete;
    TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

    [[nodiscard]] const std::string& path() const { return path_; }
    void move_to(const std::string& path) {
        std::filesystem::rename(path_, path);
        path_ = path;
    }

private:
    std::string path_;
};

inline std::unique_ptr<File> make_file(Volume& volume, const std::string& path,
                                       std::string_view text) {
    auto file = volume.create(path);
    EXPECT_TRUE(file) << file.error().context;
    const base::ByteView piece = base::as_bytes(text);
    EXPECT_TRUE((*file)->write_at(0, {&piece, 1}));
    return std::move(*file);
}

/// The text of a file, or why there is none.
[[nodiscard]] inline std::string read_text(Volume& volume, const std::string& path) {
    auto text = read_whole(volume, path, 1 << 20);
    return text ? *text : "error: " + text.error().context;
}

}  // namespace kaas::storage::testing
