#pragma once

#include "base/ids.h"
#include "storage/compaction_transactions.h"
#include "storage/error.h"
#include "storage/offset_map.h"
#include "wire/batch_rewrite.h"
#include "wire/record_batch.h"
#include "wire/records.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

namespace kaas::storage {

/// The last thing that a producer which is still known wrote: its batch stays, even without
/// records, so that whoever rebuilds producers from the log finds its last sequence.
struct LastBatch {
    std::optional<base::Offset> last_data_offset{};  ///< empty after a marker alone
    base::ProducerEpoch epoch = base::kNoProducerEpoch;
};
using LastBatches = std::unordered_map<base::ProducerId, LastBatch>;

/// What a record is judged by.
struct CompactionRules {
    const OffsetMap* last_offsets = nullptr;
    /// The map knows the keys up to here; what lies behind stays.
    base::Offset mapped_to{-1};
    std::int64_t now_ms = 0;
    std::int64_t delete_retention_ms = 0;
    base::Offset high_watermark{0};
    const LastBatches* last_batches = nullptr;
};

struct CompactionCounts {
    std::uint64_t records_in = 0;
    std::uint64_t records_kept = 0;
    std::uint64_t bytes_in = 0;
    std::uint64_t bytes_out = 0;
    /// Without a key: from before the topic was compacted. They go.
    std::uint64_t records_without_key = 0;

    CompactionCounts& operator+=(const CompactionCounts& other);
};

/// Decides what of a batch stays in a compacted log, and writes it. A batch that loses nothing is
/// copied as it is. Rules: Apache 4.4 `Cleaner.cleanInto` and `shouldRetainRecord`,
/// `MemoryRecords.filterTo`. Batches come in order, from the start of the log.
class CompactionFilter {
public:
    /// All arguments outlive the filter.
    CompactionFilter(const CompactionRules& rules, TransactionFilter& transactions,
                     wire::DecodeSite& site)
        : rules_(rules), transactions_(transactions), site_(site) {}

    /// Appends to `out` what stays of `batch`: one batch or nothing. Errors: kCorrupt.
    [[nodiscard]] Result<void> filter(const wire::BatchView& batch, std::vector<std::byte>& out);

    [[nodiscard]] const CompactionCounts& counts() const { return counts_; }

private:
    /// What of a batch stays.
    struct Verdict {
        bool drop_records = false;
        bool stays_empty = false;  ///< when no record is left
        bool ends_nothing = false;
    };
    [[nodiscard]] Result<Verdict> judge(const wire::BatchView& batch);
    [[nodiscard]] bool is_last_of_producer(const wire::BatchHeader& header) const;
    [[nodiscard]] bool stays(const wire::BatchHeader& header, const wire::RecordSketch& record);
    void write(const wire::BatchView& batch, const Verdict& verdict, std::vector<std::byte>& out);

    const CompactionRules& rules_;
    TransactionFilter& transactions_;
    wire::DecodeSite& site_;
    CompactionCounts counts_;
    std::vector<wire::RecordSketch> kept_;  ///< of the batch at hand
};

}  // namespace kaas::storage
