#pragma once

#include "base/ids.h"
#include "base/metrics.h"
#include "storage/aborted_index.h"
#include "storage/error.h"
#include "storage/partition_log.h"
#include "storage/sparse_index.h"
#include "storage/transaction_marker.h"
#include "wire/record_batch.h"
#include "wire/records.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

/// What a consumer of committed data makes of a read.
namespace kaas::storage::testing {

/// Tells, batch by batch, what is to be skipped, as Java's consumer does (`CompletedFetch`).
class CommittedFilter {
public:
    CommittedFilter(std::vector<AbortedTransaction> aborted, wire::DecodeSite& site)
        : waiting_(std::move(aborted)), site_(site) {
        std::ranges::sort(waiting_, {}, &AbortedTransaction::first_offset);
    }

    [[nodiscard]] bool skips(const wire::BatchView& batch) {
        const auto& header = batch.header;
        for (; next_ < waiting_.size() &&
               waiting_[next_].first_offset.value() <= header.last_offset();
             ++next_) {
            aborted_.insert(waiting_[next_].producer_id.value());
        }
        if (!header.control())
            return header.transactional() && aborted_.contains(header.producer_id);
        const auto marker = parse_marker(batch, site_);
        if (marker && *marker && (*marker)->end == TransactionEnd::kAbort)
            aborted_.erase(header.producer_id);
        return true;
    }

private:
    std::vector<AbortedTransaction> waiting_;
    std::size_t next_ = 0;
    std::set<std::int64_t> aborted_;
    wire::DecodeSite& site_;
};

/// Runs `take` with each batch that a consumer of committed data gets, read in pieces of at most
/// `max_bytes`.
template <class Take>
[[nodiscard]] Result<void> each_committed(PartitionLog& log, base::Offset from,
                                          std::uint64_t max_bytes, wire::DecodeSite& site,
                                          Take take) {
    for (;;) {
        KAAS_TRY_ASSIGN(
            read,
            log.read({.from = from, .max_bytes = max_bytes, .isolation = Isolation::kReadCommitted},
                     Patience::kMayBlock));
        if (read.records.length == 0) return {};
        std::vector<std::byte> bytes(read.records.length);
        KAAS_TRY(read_exactly(*read.records.file, read.records.offset, bytes, Patience::kMayBlock));
        CommittedFilter filter(std::move(read.aborted), site);
        for (base::ByteView rest(bytes); !rest.empty();) {
            const auto batch = wire::first_batch(rest);
            if (!batch) return fail(ErrorCode::kCorrupt, batch.error().context);
            rest = rest.subspan(batch->bytes.size());
            const base::Offset next{batch->header.last_offset() + 1};
            if (next <= from) return fail(ErrorCode::kCorrupt, "offsets go backwards");
            if (!filter.skips(*batch)) take(*batch, from);
            from = next;
        }
    }
}

/// The offsets of all records from `from` on that a consumer of committed data gets.
[[nodiscard]] inline Result<std::vector<std::int64_t>> committed_offsets(
    PartitionLog& log, std::int64_t from = 0, std::uint64_t max_bytes = 1 << 20) {
    base::metrics::Registry metrics;
    wire::DecodeSite site(metrics, "test");
    std::vector<std::int64_t> offsets;
    KAAS_TRY(each_committed(log, base::Offset{from}, max_bytes, site,
                            [&](const wire::BatchView& batch, base::Offset asked) {
                                auto reader = wire::RecordReader::open(batch, site);
                                for (wire::Record record; reader && *reader->next(record);) {
                                    if (record.offset >= asked.value())
                                        offsets.push_back(record.offset);
                                }
                            }));
    return offsets;
}

}  // namespace kaas::storage::testing
