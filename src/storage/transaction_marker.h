#pragma once

#include "base/ids.h"
#include "storage/error.h"
#include "wire/record_batch.h"
#include "wire/records.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace kaas::storage {

/// What a transaction coordinator wants written where a producer's transaction ends.
struct Marker {
    base::ProducerId producer;
    base::ProducerEpoch epoch = base::kNoProducerEpoch;
    std::int32_t coordinator_epoch = -1;
    bool commit = false;
    /// Of the feature `transaction.version`: from 2 on each transaction ends under an epoch of its
    /// own (KIP-890), so a marker under the epoch that is known already comes too late.
    std::int8_t transaction_version = 1;
};

/// The control batch of a marker, byte for byte as Apache's (`MemoryRecords
/// .withEndTransactionMarker`, `EndTransactionMarker` version 0). Its offset and leader epoch are
/// still to be set.
[[nodiscard]] std::vector<std::byte> encode_marker(const Marker& marker, std::int64_t now_ms);

enum class TransactionEnd { kAbort, kCommit };

/// What a marker in a log says.
struct ParsedMarker {
    TransactionEnd end;
    std::int32_t coordinator_epoch;
};

/// Empty for control batches that end no transaction, and for those that compaction has left
/// without their record. Errors: kCorrupt.
[[nodiscard]] Result<std::optional<ParsedMarker>> parse_marker(const wire::BatchView& batch,
                                                               wire::DecodeSite& site);

}  // namespace kaas::storage
