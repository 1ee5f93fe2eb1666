#include "storage/void_epochs.h"

#include "base/result.h"
#include "storage/batch_check.h"
#include "storage/error.h"
#include "storage/segment.h"
#include "storage/volume.h"
#include "wire/record_batch.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kaas::storage {

Result<std::optional<base::Offset>> end_of_batches(Volume& volume, const std::string& path) {
    KAAS_TRY_ASSIGN(file, volume.open(path, OpenMode::kRead));
    KAAS_TRY_ASSIGN(size, file->size());
    std::optional<base::Offset> end;
    std::vector<std::byte> bytes;
    for (std::uint64_t position = 0; position < size; position += bytes.size()) {
        bytes.resize(std::min<std::uint64_t>(wire::BatchHeader::kBytes, size - position));
        KAAS_TRY(read_exactly(*file, position, bytes, Patience::kMayBlock));
        const auto header = wire::BatchHeader::parse(bytes);
        if (!header || header->size() > size - position) break;
        bytes.resize(header->size());
        KAAS_TRY(read_exactly(*file, position, bytes, Patience::kMayBlock));
        if (!check_stored(bytes)) break;
        end = base::Offset{header->last_offset() + 1};
    }
    return end;
}

Result<std::optional<StrayRecords>> find_stray_records(Volume& volume, const PartitionPaths& paths,
                                                       base::LeaderEpoch epoch, base::Offset end) {
    const auto directory = paths.epoch_directory(epoch);
    auto names = volume.list(directory);
    if (!names && names.error().code == ErrorCode::kNotFound) return std::nullopt;
    if (!names) return std::unexpected(std::move(names).error());
    std::optional<StrayRecords> stray;
    for (const auto& name : *names) {
        if (!name.ends_with(".log")) continue;
        auto path = directory + "/" + name;
        KAAS_TRY_ASSIGN(found, end_of_batches(volume, path));
        if (found && *found > (stray ? stray->end : end)) stray = {std::move(path), *found};
    }
    return stray;
}

}  // namespace kaas::storage
