#pragma once

#include "base/bytes.h"
#include "storage/error.h"
#include "storage/log_config.h"
#include "wire/record_batch.h"
#include "wire/records.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace kaas::storage {

/// A record that made Apache refuse its batch; goes into the Produce response as a record error.
struct RecordFault {
    std::int32_t index;
    std::string why;
};

/// Checks what a producer sent for one partition, and makes it what the log keeps: exactly one
/// whole v2 batch (bytes behind it that are no batch are cut off), its header consistent, its
/// checksum right, its time as the topic wants it. Records stay opaque, except where the header
/// does not tell enough: a compacted topic, `record.validation=full`, a limit for unpacked
/// records, a header without maximum timestamp, times out of range, a limited past (DESIGN 7, "What
/// the broker looks at"); `site` counts them.
///
/// Base offset and leader epoch are set later, they lie outside the checksum.
/// Errors, in Apache's order: kInvalidRecord (no whole batch, several, another magic, base offset
/// not 0, counts that disagree, control bit, negative sequence, records that do not parse or are
/// too large unpacked, null keys), kTooLarge, kCorruptBatch, kUnknownCodec, kInvalidTimestamp.
/// `faults` then names records, if some are at fault. Source: Apache 4.4
/// `ProduceRequest.validateRecords`, `UnifiedLog.analyzeAndValidateRecords`, `LogValidator`.
/// Thread: any.
[[nodiscard]] Result<wire::BatchView> check_produced(base::MutableBytes records,
                                                     const LogConfig& config, std::int64_t now_ms,
                                                     wire::DecodeSite& site,
                                                     std::vector<RecordFault>* faults = nullptr);

/// Errors: kTooLarge for what is above `max.message.bytes` or `segment.bytes`.
[[nodiscard]] Result<void> check_size(std::size_t bytes, const LogConfig& config);

/// Checks the batch at the start of what was read back from a file: all there, checksum right,
/// offsets possible. Errors: kCorrupt; the caller adds file and position.
[[nodiscard]] Result<wire::BatchView> check_stored(base::ByteView bytes);

/// Makes CreateTime the type and `max_timestamp_ms` the newest time of a whole batch, and its
/// checksum right again.
void set_create_time(base::MutableBytes batch, std::int64_t max_timestamp_ms);

}  // namespace kaas::storage
