// Any bytes as any file of a partition: the dump must show them or name the damage, and end.
#include "base/assert.h"
#include "base/bytes.h"
#include "storage/dump.h"
#include "storage/memory_volume.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer gives the name
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    namespace base = kaas::base;
    using kaas::storage::dump;
    using kaas::storage::DumpOptions;
    using kaas::storage::MemoryVolume;
    constexpr std::array<std::string_view, 6> kSuffixes = {".log",      ".index",    ".timeindex",
                                                           ".txnindex", ".snapshot", ".jsonl"};
    if (size == 0) return 0;
    // The first byte says which file the others are.
    const std::string path = "00000000000000000007" + std::string(kSuffixes[data[0] % 6]);
    const base::ByteView bytes = std::as_bytes(std::span(data + 1, size - 1));
    MemoryVolume volume;
    auto file = volume.create(path);
    KAAS_ASSERT(file && (*file)->write_at(0, {&bytes, 1}));
    std::size_t lines = 0;
    const DumpOptions options{.form = DumpOptions::Form::kJson, .records = true};
    auto summary = dump(volume, path, options, [&](std::string_view line) {
        KAAS_ASSERT(line.ends_with('\n'));
        ++lines;
    });
    KAAS_ASSERT(summary && summary->files == 1 && summary->items == lines);
    return 0;
}
