#pragma once

#include "storage/compaction.h"
#include "storage/testing_log.h"
#include "wire/records.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

/// What tests of compaction share: a compacted log in memory, and its records as plain values.
namespace kaas::storage::testing {

struct KeyValue {
    std::string key;
    std::optional<std::string> value;
};

/// A record as a consumer sees it.
struct SeenRecord {
    std::int64_t offset = 0;
    std::int64_t timestamp_ms = 0;
    std::string key;
    std::optional<std::string> value;

    friend bool operator==(const SeenRecord&, const SeenRecord&) = default;
};

struct KeyedBatch {
    std::vector<KeyValue> records;
    std::int64_t timestamp_ms = 1'700'000'000'000;
    wire::Compression compression = wire::Compression::kNone;
    std::int64_t producer_id = -1;
    std::int16_t producer_epoch = -1;
    std::int32_t sequence = -1;
    std::int64_t base_offset = 0;
    bool transactional = false;
};

[[nodiscard]] inline std::vector<std::byte> make_keyed_batch(const KeyedBatch& batch) {
    wire::BatchBuilder builder({.base_offset = batch.base_offset,
                                .compression = batch.compression,
                                .producer_id = batch.producer_id,
                                .producer_epoch = batch.producer_epoch,
                                .base_sequence = batch.sequence,
                                .transactional = batch.transactional});
    auto time = batch.timestamp_ms;
    for (const auto& [key, value] : batch.records) {
        std::optional<base::ByteView> bytes;
        if (value) bytes = base::as_bytes(*value);
        builder.add(time++, base::as_bytes(key), bytes);
    }
    return builder.build();
}

/// Headers of the batches, and their records, of some bytes.
struct SeenLog {
    std::vector<wire::BatchHeader> batches;
    std::vector<SeenRecord> records;
};

[[nodiscard]] inline SeenLog look_at(base::ByteView bytes) {
    base::metrics::Registry metrics;
    wire::DecodeSite site(metrics, "test");
    SeenLog seen;
    for (auto rest = bytes; !rest.empty();) {
        const auto batch = wire::first_batch(rest);
        if (!batch || !wire::check_crc(*batch)) {
            ADD_FAILURE() << "no good batch";
            return seen;
        }
        rest = rest.subspan(batch->bytes.size());
        seen.batches.push_back(batch->header);
        auto reader = wire::RecordReader::open(*batch, site);
        EXPECT_TRUE(reader.has_value());
        for (wire::Record record; reader;) {
            const auto more = reader->next(record);
            EXPECT_TRUE(more.has_value()) << more.error().context;
            if (!more || !*more) break;
            SeenRecord plain{
                .offset = record.offset,
                .timestamp_ms = record.timestamp_ms,
                .key = std::string(base::as_text(record.key.value_or(base::ByteView{}))),
                .value = std::nullopt};
            if (record.value) plain.value = std::string(base::as_text(*record.value));
            seen.records.push_back(std::move(plain));
        }
    }
    return seen;
}

/// All that a consumer sees of a log.
[[nodiscard]] inline SeenLog look_at(PartitionLog& log) {
    const auto bytes = read_all(log, log.view().log_start);
    EXPECT_TRUE(bytes.has_value()) << bytes.error().context;
    return bytes ? look_at(*bytes) : SeenLog{};
}

/// Compacts a log once, as a cleaner thread would.
class TestCleaner {
public:
    explicit TestCleaner(base::Clock& clock) : clock_(clock) {
        means.map = &map_;
        means.site = &site_;
        means.io_buffer_bytes = 200;  // smaller than most batches
        means.before_io = [](std::uint64_t) -> Result<void> { return {}; };
    }

    /// False when there was nothing to do.
    [[nodiscard]] Result<bool> run(PartitionLog& log) {
        auto sight = log.compaction_sight();
        const auto cleanable =
            find_cleanable(sight.view, sight.clean_to, *sight.config, clock_.wall_ms());
        if (cleanable.dirty_bytes == 0 || !log.begin_compaction()) return false;
        auto swept = log.sweep_compactions();
        Result<CompactionCounts> done = fail(ErrorCode::kIo, "not swept");
        if (swept) {
            Compaction compaction(log, std::move(sight), cleanable, means);
            done = compaction.run();
        }
        log.end_compaction();
        if (!swept) return std::unexpected(swept.error());
        if (!done) return std::unexpected(done.error());
        counts = *done;
        return true;
    }

    CompactionMeans means;
    CompactionCounts counts;

private:
    base::Clock& clock_;
    base::metrics::Registry metrics_;
    wire::DecodeSite site_{metrics_, "compaction"};
    OffsetMap map_{KeyHasher::random()};
};

}  // namespace kaas::storage::testing
