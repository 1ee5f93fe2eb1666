#include "storage/compaction_filter.h"

#include "storage/compaction_transactions.h"
#include "storage/transaction_marker.h"
#include "wire/batch_rewrite.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace kaas::storage {

CompactionCounts& CompactionCounts::operator+=(const CompactionCounts& other) {
    records_in += other.records_in;
    records_kept += other.records_kept;
    bytes_in += other.bytes_in;
    bytes_out += other.bytes_out;
    records_without_key += other.records_without_key;
    return *this;
}

bool CompactionFilter::is_last_of_producer(const wire::BatchHeader& header) const {
    if (!header.has_producer_id()) return false;
    const auto known = rules_.last_batches->find(base::ProducerId{header.producer_id});
    if (known == rules_.last_batches->end()) return false;
    const auto& last = known->second;
    if (last.last_data_offset) return header.last_offset() == last.last_data_offset->value();
    return header.control() && base::ProducerEpoch{header.producer_epoch} == last.epoch;
}

Result<CompactionFilter::Verdict> CompactionFilter::judge(const wire::BatchView& batch) {
    const auto& header = batch.header;
    Verdict verdict;
    if (header.control()) {
        KAAS_TRY_ASSIGN(marker, parse_marker(batch, site_));
        verdict.ends_nothing = transactions_.ends_nothing(header, marker);
        const auto horizon = header.delete_horizon_ms();
        verdict.drop_records = verdict.ends_nothing && horizon && *horizon <= rules_.now_ms;
    } else {
        verdict.drop_records = transactions_.is_aborted(header);
    }
    verdict.stays_empty =
        is_last_of_producer(header) || header.last_offset() + 1 == rules_.high_watermark.value();
    return verdict;
}

bool CompactionFilter::stays(const wire::BatchHeader& header, const wire::RecordSketch& record) {
    if (header.control() || record.offset > rules_.mapped_to.value()) return true;
    if (!record.key) {
        ++counts_.records_without_key;
        return false;
    }
    if (record.offset < rules_.last_offsets->get(*record.key).value()) return false;
    if (record.has_value) return true;
    // A tombstone stays until everybody who reads from the start has had the time to see it.
    const auto horizon = header.delete_horizon_ms();
    return !horizon || rules_.now_ms < *horizon;
}

Result<void> CompactionFilter::filter(const wire::BatchView& batch, std::vector<std::byte>& out) {
    const auto& header = batch.header;
    counts_.bytes_in += batch.bytes.size();
    counts_.records_in += static_cast<std::uint64_t>(std::max(header.count, 0));
    KAAS_TRY_ASSIGN(verdict, judge(batch));
    kept_.clear();
    const auto before = out.size();
    if (!verdict.drop_records) {
        auto scanner = wire::RecordScanner::open(batch, site_);
        if (!scanner) return fail(ErrorCode::kCorrupt, scanner.error().context);
        for (wire::RecordSketch record;;) {
            const auto more = scanner->next(record);
            if (!more) return fail(ErrorCode::kCorrupt, more.error().context);
            if (!*more) break;
            if (record.offset < header.base_offset || record.offset > header.last_offset())
                return fail(ErrorCode::kCorrupt, "a record outside its batch's offsets");
            if (stays(header, record)) kept_.push_back(record);
        }
        write(batch, verdict, out);  // while the scanner holds what the sketches borrow
    }
    if (kept_.empty() && verdict.stays_empty) wire::BatchRewriter::write_empty(header, out);
    counts_.records_kept += kept_.size();
    counts_.bytes_out += out.size() - before;
    return {};
}

void CompactionFilter::write(const wire::BatchView& batch, const Verdict& verdict,
                             std::vector<std::byte>& out) {
    if (kept_.empty()) return;
    const auto& header = batch.header;
    auto horizon = header.delete_horizon_ms();
    const bool has_tombstones =
        std::ranges::any_of(kept_, [](const auto& record) { return !record.has_value; });
    const bool sets_horizon = !horizon && (has_tombstones || verdict.ends_nothing);
    if (kept_.size() == static_cast<std::size_t>(header.count) && !sets_horizon) {
        out.insert(out.end(), batch.bytes.begin(), batch.bytes.end());
        return;
    }
    if (sets_horizon) horizon = rules_.now_ms + rules_.delete_retention_ms;
    wire::BatchRewriter rewriter(header, horizon);
    for (const auto& record : kept_) rewriter.keep(record);
    rewriter.write(out);
}

}  // namespace kaas::storage
