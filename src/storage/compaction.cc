#include "storage/compaction.h"

#include "base/assert.h"
#include "storage/aborted_transactions.h"
#include "storage/batch_stream.h"
#include "storage/sparse_index.h"
#include "storage/transaction_marker.h"
#include "wire/batch_rewrite.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace kaas::storage {
namespace {

/// What is written is synced in pieces: a gigabyte at once would hold up every fsync of the volume.
constexpr std::uint64_t kSyncBytes = std::uint64_t{8} << 20;

}  // namespace

Compaction::Compaction(PartitionLog& log, CompactionSight sight, const Cleanable& cleanable,
                       CompactionMeans means)
    : log_(log),
      volume_(log.log_dir().volume()),
      sight_(std::move(sight)),
      cleanable_(cleanable),
      means_(std::move(means)),
      now_ms_(log.log_dir().clock().wall_ms()),
      mapped_to_(cleanable.first_dirty - 1) {}

Result<CompactionCounts> Compaction::run() {
    KAAS_TRY(find_aborted());
    KAAS_TRY(learn_keys());
    KAAS_TRY_ASSIGN(all, groups());
    const auto last_batches = log_.last_batches();
    const CompactionRules rules{.last_offsets = means_.map,
                                .mapped_to = mapped_to_,
                                .now_ms = now_ms_,
                                .delete_retention_ms = sight_.config->delete_retention_ms,
                                .high_watermark = sight_.view.high_watermark,
                                .last_batches = &last_batches};
    TransactionFilter transactions(aborted_);
    CompactionFilter filter(rules, transactions, *means_.site);
    for (const auto& group : all) {
        KAAS_TRY(rewrite(sealed().subspan(group.first, group.last - group.first),
                         &group == &all.back(), filter, transactions));
    }
    return filter.counts();
}

/// What is clean has none any more, but for markers.
Result<void> Compaction::find_aborted() {
    const auto& view = sight_.view;
    const auto* first = view.span_of(cleanable_.first_dirty);
    if (first == nullptr) return {};
    KAAS_TRY_ASSIGN(
        aborted, collect_aborted(volume_, view, *first, cleanable_.first_dirty,
                                 cleanable_.first_uncleanable, Patience::kMayBlock, *means_.site));
    aborted_ = std::move(aborted);
    return {};
}

// ---- which record is the last of its key ------------------------------------------------------

Result<void> Compaction::learn_keys() {
    // No more slots than there can be keys: a small log takes little memory.
    const auto offsets = static_cast<double>(cleanable_.first_uncleanable - cleanable_.first_dirty);
    // The setting has no bounds; whatever it is, the map takes at least one key.
    const auto load = means_.map_load_factor > 0.01 ? std::min(means_.map_load_factor, 1.0) : 0.01;
    const auto enough = static_cast<std::size_t>(offsets / load) + 2;
    const auto slots =
        std::max<std::size_t>(2, std::min(means_.map_bytes_max / OffsetMap::kBytesPerSlot, enough));
    means_.map->reset(slots);
    const auto keys_max = std::clamp<std::size_t>(
        static_cast<std::size_t>(static_cast<double>(slots) * load), 1, slots - 1);
    TransactionFilter transactions(aborted_);
    for (auto i = cleanable_.sealed_dirty; i < cleanable_.sealed_end; ++i) {
        KAAS_TRY_ASSIGN(whole, learn_segment(sealed()[i], keys_max, transactions));
        map_utilization_ =
            static_cast<double>(means_.map->size()) / static_cast<double>(means_.map->slots());
        if (!whole) return {};
        mapped_to_ = sealed()[i].facts.end - 1;
    }
    return {};
}

Result<bool> Compaction::learn_segment(const SegmentSpan& span, std::size_t keys_max,
                                       TransactionFilter& transactions) {
    KAAS_TRY_ASSIGN(file, span.segment->log(volume_, Patience::kMayBlock));
    KAAS_TRY_ASSIGN(first, locate(volume_, span, cleanable_.first_dirty, Patience::kMayBlock));
    if (!first) return true;
    BatchStream stream(std::move(file), span, first->position, means_.io_buffer_bytes,
                       means_.before_io);
    for (;;) {
        KAAS_TRY_ASSIGN(batch, stream.next());
        if (!batch) return true;
        KAAS_TRY_ASSIGN(whole, learn_batch(*batch, keys_max, transactions));
        if (!whole) return false;
        mapped_to_ = std::max(mapped_to_, base::Offset{batch->header.last_offset()});
    }
}

Result<bool> Compaction::learn_batch(const wire::BatchView& batch, std::size_t keys_max,
                                     TransactionFilter& transactions) {
    if (batch.header.control()) {
        KAAS_TRY_ASSIGN(marker, parse_marker(batch, *means_.site));
        (void)transactions.ends_nothing(batch.header, marker);
        return true;
    }
    if (transactions.is_aborted(batch.header)) return true;
    auto scanner = wire::RecordScanner::open(batch, *means_.site);
    if (!scanner) return fail(ErrorCode::kCorrupt, scanner.error().context);
    for (wire::RecordSketch record;;) {
        const auto more = scanner->next(record);
        if (!more) return fail(ErrorCode::kCorrupt, more.error().context);
        if (!*more) return true;
        if (!record.key || record.offset < cleanable_.first_dirty.value()) continue;
        if (means_.map->size() >= keys_max) return false;
        mapped_to_ = base::Offset{record.offset};
        means_.map->put(*record.key, mapped_to_);
    }
}

// ---- the log without what is superseded -------------------------------------------------------

Result<std::vector<SegmentGroup>> Compaction::groups() {
    std::vector<SegmentExtent> extents;
    for (const auto& [segment, facts] : sealed().first(cleanable_.sealed_end)) {
        if (facts.base > mapped_to_) break;
        KAAS_TRY(segment->log(volume_, Patience::kMayBlock));
        extents.push_back({.base = facts.base,
                           .last_offset = facts.end - 1,
                           .bytes = facts.bytes,
                           .offset_index_bytes = segment->offsets().bytes(),
                           .time_index_bytes = segment->times().bytes()});
    }
    return group_segments(extents, *sight_.config);
}

Result<void> Compaction::rewrite(std::span<const SegmentSpan> group, bool is_last,
                                 CompactionFilter& filter, TransactionFilter& transactions) {
    KAAS_TRY_ASSIGN(segment, log_.begin_replacement(group.front().facts.base));
    Output output{.segment = segment,
                  .plan = SegmentPlan(segment->name(), now_ms_, 0),
                  .appended_ms = -1,
                  .synced_bytes = 0};
    for (const auto& span : group)
        output.appended_ms = std::max(output.appended_ms, span.facts.appended_ms);
    const auto kept_before = filter.counts().records_kept;
    for (const auto& span : group) KAAS_TRY(copy(span, filter, transactions, output));
    KAAS_TRY(write_out(output));
    KAAS_TRY(finish(output));
    std::vector<SegmentName> old;
    for (const auto& span : group) old.push_back(span.facts.name());
    auto facts = output.plan.facts();
    facts.aborted = output.aborted;
    facts.has_records = filter.counts().records_kept > kept_before;
    facts.end = group.back().facts.end;  // what was compacted away at the end is a hole of this one
    std::optional<base::Offset> clean_to;
    if (is_last) clean_to = mapped_to_ + 1;
    return log_.replace(old, {std::move(segment), facts}, clean_to);
}

Result<void> Compaction::copy(const SegmentSpan& from, CompactionFilter& filter,
                              TransactionFilter& transactions, Output& output) {
    KAAS_TRY_ASSIGN(file, from.segment->log(volume_, Patience::kMayBlock));
    BatchStream stream(std::move(file), from, 0, means_.io_buffer_bytes, means_.before_io);
    for (;;) {
        KAAS_TRY_ASSIGN(batch, stream.next());
        if (!batch) return {};
        if (auto filtered = filter.filter(*batch, output.unwritten); !filtered) {
            return fail(filtered.error().code,
                        fmt::format("{}, batch at offset {}: {}", from.segment->path(),
                                    batch->header.base_offset, filtered.error().context));
        }
        for (const auto& ended : transactions.take_ended()) {
            output.segment->aborted().append(ended);
            output.aborted.add(ended);
        }
        if (output.unwritten.size() >= means_.io_buffer_bytes) KAAS_TRY(write_out(output));
    }
}

Result<void> Compaction::write_out(Output& output) {
    if (output.unwritten.empty()) return {};
    KAAS_TRY(means_.before_io(output.unwritten.size()));
    if (!log_.log_dir().room().take(output.unwritten.size()))
        return fail(ErrorCode::kNoSpace, "what is left of the volume is kept");
    if (output.log == nullptr) {
        KAAS_TRY(output.segment->create(volume_));
        KAAS_TRY_ASSIGN(log, output.segment->log(volume_, Patience::kMayBlock));
        output.log = std::move(log);
    }
    const auto position = output.plan.facts().bytes;
    for (base::ByteView rest(output.unwritten); !rest.empty();) {
        const auto batch = wire::first_batch(rest);
        KAAS_ASSERT(batch.has_value());
        rest = rest.subspan(batch->bytes.size());
        const auto placement =
            output.plan.add({.base_offset = base::Offset{batch->header.base_offset},
                             .last_offset = base::Offset{batch->header.last_offset()},
                             .bytes = batch->bytes.size(),
                             .max_timestamp_ms = batch->header.max_timestamp,
                             .now_ms = output.appended_ms},
                            *sight_.config);
        if (placement.offset_entry) output.segment->offsets().append(*placement.offset_entry);
        if (placement.time_entry) output.segment->times().append(*placement.time_entry);
    }
    const base::ByteView piece(output.unwritten);
    KAAS_TRY(output.log->write_at(position, {&piece, 1}));
    output.unwritten.clear();
    if (output.plan.facts().bytes - output.synced_bytes < kSyncBytes) return {};
    output.synced_bytes = output.plan.facts().bytes;
    return output.log->sync();
}

/// Log and indexes are durable, by content and by name in their directory, before anything names
/// them.
Result<void> Compaction::finish(Output& output) {
    if (output.log == nullptr) return {};
    if (const auto last = output.plan.time_entry()) output.segment->times().append(*last);
    KAAS_TRY(output.log->sync());
    KAAS_TRY(output.segment->offsets().finish(volume_));
    KAAS_TRY(output.segment->times().finish(volume_));
    KAAS_TRY(output.segment->aborted().flush(volume_, output.segment->aborted_path()));
    output.segment->offsets().drop_memory();
    output.segment->times().drop_memory();
    output.segment->aborted().drop_memory();
    return volume_.sync_directory(output.segment->directory());
}

}  // namespace kaas::storage
