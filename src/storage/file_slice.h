#pragma once

#include <cstdint>
#include <memory>

namespace kaas::storage {

class File;

/// A run of whole batches within one file, ready for sendfile. Keeps the file usable, open or not.
struct FileSlice {
    std::shared_ptr<File> file;
    std::uint64_t offset = 0;
    std::uint64_t length = 0;
};

}  // namespace kaas::storage
