#include "storage/time_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kaas::storage {
namespace {

using Found = std::optional<OffsetAndTimestamp>;

/// The first record of a batch that is at or behind `from` and not older than `timestamp_ms`.
[[nodiscard]] Result<Found> first_in_batch(File& file, const std::string& path,
                                           const BatchPlace& place, const wire::BatchHeader& header,
                                           std::int64_t timestamp_ms, base::Offset from,
                                           wire::DecodeSite& site) {
    const auto corrupt = [&](const wire::Error& error) {
        return fail(ErrorCode::kCorrupt,
                    fmt::format("{} at {}: {}", path, place.position, error.context));
    };
    KAAS_TRY_ASSIGN(size, file.size());
    if (place.end() > size) return corrupt({wire::CodecError::kTruncated, "the file ends early"});
    std::vector<std::byte> bytes(place.bytes);
    KAAS_TRY(read_exactly(file, place.position, bytes, Patience::kMayBlock));
    if (auto crc = wire::check_crc({.header = header, .bytes = bytes}); !crc)
        return corrupt(crc.error());
    auto reader = wire::RecordReader::open({.header = header, .bytes = bytes}, site);
    if (!reader) return corrupt(reader.error());
    wire::Record record;
    for (;;) {
        const auto more = reader->next(record);
        if (!more) return corrupt(more.error());
        if (!*more) return Found{};
        if (record.timestamp_ms < timestamp_ms || record.offset < from.value()) continue;
        return Found({.offset = base::Offset{record.offset},
                      .timestamp_ms = record.timestamp_ms,
                      .leader_epoch = place.leader_epoch});
    }
}

/// Where to start looking for `timestamp_ms`: everything before is older. An index is a hint: it
/// counts if the batch that it names is there and has the time that it says.
[[nodiscard]] Result<base::Offset> skip_older(Volume& volume, const SegmentSpan& span,
                                              std::int64_t timestamp_ms) {
    const auto base = span.facts.base;
    KAAS_TRY_ASSIGN(entry, span.segment->times().last_where(
                               [&](const TimeEntry& e) { return e.timestamp_ms < timestamp_ms; },
                               Patience::kMayBlock));
    if (!entry) return base;
    const auto last_offset = base + entry->relative_offset;
    KAAS_TRY_ASSIGN(named, locate(volume, span, last_offset, Patience::kMayBlock));
    const bool good = named && named->last_offset == last_offset &&
                      named->max_timestamp_ms == entry->timestamp_ms;
    return good ? last_offset : base;
}

[[nodiscard]] Result<Found> first_in_segment(Volume& volume, const SegmentSpan& span,
                                             std::int64_t timestamp_ms, base::Offset from,
                                             base::Offset limit, wire::DecodeSite& site) {
    KAAS_TRY_ASSIGN(file, span.segment->log(volume, Patience::kMayBlock));
    KAAS_TRY_ASSIGN(skipped, skip_older(volume, span, timestamp_ms));
    KAAS_TRY_ASSIGN(first, locate(volume, span, std::max(from, skipped), Patience::kMayBlock));
    if (!first) return Found{};
    const auto path = span.segment->path();
    HeaderCursor cursor(*file, *span.segment, first->position, span.facts.bytes,
                        Patience::kMayBlock);
    for (;;) {
        KAAS_TRY_ASSIGN(place, cursor.next());
        if (!place || place->base_offset >= limit) return Found{};
        if (place->max_timestamp_ms < timestamp_ms) continue;
        KAAS_TRY_ASSIGN(
            found, first_in_batch(*file, path, *place, cursor.header(), timestamp_ms, from, site));
        if (found) return found;
    }
}

[[nodiscard]] std::vector<const SegmentSpan*> spans_of(const LogView& view) {
    std::vector<const SegmentSpan*> spans;
    for (const auto& span : *view.sealed) spans.push_back(&span);
    if (view.last.segment != nullptr) spans.push_back(&view.last);
    return spans;
}

}  // namespace

Result<Found> first_record_at_or_after(Volume& volume, const LogView& view,
                                       std::int64_t timestamp_ms, base::Offset limit,
                                       wire::DecodeSite& site) {
    for (const auto* span : spans_of(view)) {
        if (span->facts.max_timestamp_ms < timestamp_ms) continue;
        KAAS_TRY_ASSIGN(found,
                        first_in_segment(volume, *span, timestamp_ms, view.log_start, limit, site));
        if (found) return found;
    }
    return Found{};
}

Result<Found> record_of_max_timestamp(Volume& volume, const LogView& view, base::Offset limit,
                                      wire::DecodeSite& site) {
    const SegmentSpan* newest = nullptr;
    for (const auto* span : spans_of(view)) {
        if (newest == nullptr || span->facts.max_timestamp_ms > newest->facts.max_timestamp_ms)
            newest = span;
    }
    if (newest == nullptr || newest->facts.max_timestamp_ms < 0) return Found{};
    return first_in_segment(volume, *newest, newest->facts.max_timestamp_ms, newest->facts.base,
                            limit, site);
}

}  // namespace kaas::storage
