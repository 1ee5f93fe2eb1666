#pragma once

#include "storage/error.h"
#include "storage/volume.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace kaas::storage {

struct DumpOptions {
    enum class Form : std::uint8_t {
        kText,  ///< a line an item, `name: value` pairs; a heading before each file
        kJson,  ///< a JSON object a line, each naming its file
    } form = Form::kText;
    bool records = false;       ///< unpack batches and show their records too
    std::string name_prefix{};  ///< stands before each file's path when it is shown
};

struct DumpSummary {
    std::size_t files = 0;
    std::size_t items = 0;
    std::size_t damages = 0;  ///< places where a file is not what its name says; shown as items
};

/// Shows what is in the files of a partition: batches, indexes, snapshots, manifests. `path` is one
/// of them, or a directory, whose files are shown one after the other, those below it included.
/// Reads what is there, to the end of each file: what counts of a segment stands in the manifest.
/// `out` gets whole lines. A file that cannot be shown is a damage, not an error.
/// Errors: kNotFound and the volume's, when `path` itself cannot be read.
[[nodiscard]] Result<DumpSummary> dump(Volume& volume, const std::string& path,
                                       const DumpOptions& options,
                                       const std::function<void(std::string_view)>& out);

}  // namespace kaas::storage
