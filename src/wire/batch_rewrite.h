#pragma once

#include "base/bytes.h"
#include "wire/compression.h"
#include "wire/error.h"
#include "wire/record_batch.h"
#include "wire/records.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace kaas::wire {

/// As much of a record as it takes to decide whether it stays; borrows as `Record` does.
struct RecordSketch {
    std::int64_t offset = 0;
    std::int64_t timestamp_ms = -1;
    std::optional<ByteView> key;
    bool has_value = false;
    /// What follows the timestamp. It counts from the batch's base offset, so it can be copied into
    /// any batch of the same base offset.
    ByteView tail;
};

/// Reads the records of one batch without taking values and headers apart: several times as fast as
/// `RecordReader`, for whoever copies most of what he reads.
/// Thread: one at a time. Sketches die with the scanner (or with the batch).
class RecordScanner {
public:
    /// Errors: as `unpack_records`.
    [[nodiscard]] static Result<RecordScanner> open(const BatchView& batch, DecodeSite& site,
                                                    std::size_t limit_bytes = kUnpackedBytesMax);

    /// False behind the last. Errors: kInvalid, as `RecordReader::next`; headers are not looked at.
    [[nodiscard]] Result<bool> next(RecordSketch& record);

private:
    RecordScanner(const BatchHeader& header, UnpackedRecords records);

    BatchHeader header_;
    std::vector<std::byte> unpacked_;
    ByteView rest_;
    std::int32_t left_;
};

/// Writes a batch anew with some of its records: what compaction leaves of it. Offsets, sequences,
/// producer, leader epoch, codec and kind stay, holes included. As Apache 4.4's
/// `MemoryRecords.buildRetainedRecordsInto`, to the byte where the codec allows.
class BatchRewriter {
public:
    /// `delete_horizon_ms` is when its tombstones and markers may go (KIP-534). `original` outlives
    /// the rewriter.
    BatchRewriter(const BatchHeader& original, std::optional<std::int64_t> delete_horizon_ms);

    /// In order of offset.
    void keep(const RecordSketch& record);
    [[nodiscard]] std::int32_t count() const { return count_; }
    /// Appends the batch to `out`; at least one record was kept.
    void write(std::vector<std::byte>& out) const;

    /// Appends a batch with the header of `original` and no record: it holds the place of a
    /// producer's last sequence, or of the log's last offset
    /// (`DefaultRecordBatch.writeEmptyHeader`).
    static void write_empty(const BatchHeader& original, std::vector<std::byte>& out);

private:
    const BatchHeader& original_;
    const std::optional<std::int64_t> delete_horizon_ms_;
    std::vector<std::byte> records_;
    std::int32_t count_ = 0;
    std::int64_t base_timestamp_;
    std::int64_t max_timestamp_ = -1;
};

}  // namespace kaas::wire
