// Any bytes as the two files of an epoch: the reader must answer, never throw, and never lose a
// line silently: what is good stays as it is when NULs follow, and a further good line is either
// read or refused.
#include "base/assert.h"
#include "base/bytes.h"
#include "storage/epoch_log.h"
#include "storage/epoch_reader.h"
#include "storage/error.h"
#include "storage/memory_volume.h"
#include "storage/volume.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace kaas::storage {
namespace {

void put(Volume& volume, const std::string& path, std::string_view text) {
    auto file = volume.create(path);
    KAAS_ASSERT(file);
    base::ByteView piece = base::as_bytes(text);
    KAAS_ASSERT((*file)->write_at(0, {&piece, 1}));
}

void parse(std::string_view text) {
    auto file = parse_epoch_file(text, "f");
    if (!file) {
        KAAS_ASSERT(file.error().code == ErrorCode::kCorrupt);
        return;
    }
    KAAS_ASSERT(file->end <= text.size());
    KAAS_ASSERT(file->offsets.size() == file->lines.size());

    auto with_nuls = parse_epoch_file(std::string(text) + std::string(3, '\0'), "f");
    KAAS_ASSERT(with_nuls && with_nuls->lines == file->lines);

    auto with_line = parse_epoch_file(std::string(text) + "\n{\"further\":1}\n", "f");
    KAAS_ASSERT(!with_line || with_line->lines.size() - file->lines.size() <= 1);

    auto with_proof = parse_epoch_file(
        fmt::format("{}\n{{\"log\":{{\"synced\":{}}}}}\n", text, text.size() + 1), "f");
    KAAS_ASSERT(!with_proof || with_proof->lines.size() == file->lines.size() + 1);
}

void read(std::string_view first, std::string_view second) {
    MemoryVolume volume;
    const EpochLogPath path{.directory = "p", .kind = "manifest"};
    KAAS_ASSERT(volume.make_directory("p"));
    KAAS_ASSERT(volume.make_directory(path.epoch_directory(1)));
    put(volume, path.file(1, 1), first);
    put(volume, path.file(1, 2), second);
    auto state = read_epoch(volume, path, 1);
    if (!state || !*state) return;
    KAAS_ASSERT((*state)->vouched_lines <= (*state)->lines.size());
    KAAS_ASSERT(!(*state)->released || (*state)->settled());
}

}  // namespace
}  // namespace kaas::storage

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer gives the name
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    std::string_view text(reinterpret_cast<const char*>(data), size);
    kaas::storage::parse(text);
    // A form feed, which no JSON has, divides the two files.
    std::size_t divide = std::min(text.find('\f'), size);
    kaas::storage::read(text.substr(0, divide),
                        divide < size ? text.substr(divide + 1) : std::string_view());
    return 0;
}
