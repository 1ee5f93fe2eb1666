#pragma once

#include "base/bytes.h"
#include "base/ids.h"
#include "base/uuid.h"
#include "storage/epoch_log.h"
#include "storage/error.h"
#include "storage/manifest.h"
#include "storage/segment.h"
#include "storage/sparse_index.h"
#include "storage/volume.h"
#include "wire/record_batch.h"
#include "wire/records.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

/// For tests and measurements of logs that no disk here would hold.
namespace kaas::storage::testing {

/// A log of segments of 1 GiB, as its owner left it under epoch 0: all but the last batches are
/// holes in sparse files, which nobody may read; the index of the last segment is whole.
class LargeLog {
public:
    static constexpr std::int64_t kBatchBytes = 4096;
    static constexpr std::int64_t kBatchesASegment = (std::int64_t{1} << 30) / kBatchBytes;
    static constexpr std::int64_t kRealBatches = 64;

    /// Errors: the volume's.
    [[nodiscard]] static Result<LargeLog> make(Volume& volume, const std::string& directory,
                                               std::int64_t segments) {
        const PartitionPaths paths{directory};
        KAAS_TRY(volume.make_directory(directory.substr(0, directory.rfind('/'))));
        KAAS_TRY(volume.make_directory(directory));
        KAAS_TRY(volume.make_directory(paths.epoch_directory(kEpoch)));
        Manifest manifest;
        manifest.owner = {.broker = base::BrokerId{1}, .incarnation = {base::Uuid::random()}};
        manifest.epochs.assign(kEpoch, base::Offset{0});
        for (std::int64_t i = 0; i < segments; ++i) {
            manifest.sealed.push_back(facts_of(i));
            KAAS_TRY(write_log(volume, paths, manifest.sealed.back()));
        }
        const auto& last = manifest.sealed.back();
        KAAS_TRY(write_index(volume, paths, last.name()));
        manifest.active = SegmentFacts{.epoch = kEpoch, .base = last.end, .end = last.end};
        KAAS_TRY_ASSIGN(log, EpochLog::create(volume, PartitionPaths{directory}.manifest(),
                                              kEpoch.value(), manifest.picture(),
                                              {.directory = EpochLogOptions::Directory::kMade}));
        KAAS_TRY(log.release());
        return LargeLog(last.end);
    }

    [[nodiscard]] base::Offset end() const { return end_; }

private:
    static constexpr base::LeaderEpoch kEpoch{0};
    static constexpr std::int64_t kTimeMs = 1'700'000'000'000;

    explicit LargeLog(base::Offset end) : end_(end) {}

    static SegmentFacts facts_of(std::int64_t segment) {
        const base::Offset base{segment * kBatchesASegment};
        const auto end = base + kBatchesASegment;
        return {.epoch = kEpoch,
                .base = base,
                .end = end,
                .bytes = static_cast<std::uint64_t>(kBatchesASegment * kBatchBytes),
                .max_timestamp_ms = kTimeMs,
                .max_timestamp_offset = end - 1};
    }

    /// A batch of one record and of `kBatchBytes`.
    static std::vector<std::byte> batch_at(base::Offset offset) {
        std::vector<std::byte> bytes;
        for (std::size_t value = kBatchBytes / 2; std::ssize(bytes) != kBatchBytes;
             value += static_cast<std::size_t>(kBatchBytes - std::ssize(bytes))) {
            wire::BatchBuilder builder({});
            builder.add(kTimeMs, base::as_bytes("key"), base::as_bytes(std::string(value, 'v')));
            bytes = builder.build();
        }
        wire::set_base_offset(bytes, offset.value());
        wire::set_partition_leader_epoch(bytes, kEpoch.value());
        return bytes;
    }

    static Result<void> write_log(Volume& volume, const PartitionPaths& paths,
                                  const SegmentFacts& facts) {
        KAAS_TRY_ASSIGN(file, volume.create(paths.file(facts.name(), ".log")));
        for (auto i = kBatchesASegment - kRealBatches; i < kBatchesASegment; ++i) {
            const auto batch = batch_at(facts.base + i);
            const base::ByteView piece(batch);
            KAAS_TRY(file->write_at(static_cast<std::uint64_t>(i * kBatchBytes), {&piece, 1}));
        }
        return {};
    }

    static Result<void> write_index(Volume& volume, const PartitionPaths& paths,
                                    const SegmentName& name) {
        const auto log_path = paths.file(name, ".log");
        OffsetIndex index(log_path, IndexOrigin::kNew);
        for (std::int64_t i = 0; i < kBatchesASegment; ++i) {
            index.append({.relative_offset = static_cast<std::int32_t>(i),
                          .position = static_cast<std::int32_t>(i * kBatchBytes)});
        }
        return index.finish(volume);
    }

    base::Offset end_;
};

}  // namespace kaas::storage::testing
