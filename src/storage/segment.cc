#include "storage/segment.h"

#include "storage/epoch_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <expected>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace kaas::storage {

std::string PartitionPaths::topic_directory() const {
    return directory->substr(0, directory->rfind('/'));
}

EpochLogPath PartitionPaths::manifest() const {
    return {.directory = *directory, .kind = "manifest"};
}

std::string PartitionPaths::epoch_directory(base::LeaderEpoch epoch) const {
    return fmt::format("{}/{}", *directory, epoch_name(epoch.value()));
}

std::string PartitionPaths::compaction_directory(base::LeaderEpoch epoch,
                                                 std::int32_t compaction) const {
    if (compaction == 0) return epoch_directory(epoch);
    return fmt::format("{}/c{}", epoch_directory(epoch), compaction);
}

std::string PartitionPaths::file(const SegmentName& name, const char* suffix) const {
    return fmt::format("{}/{:020d}{}", compaction_directory(name.epoch, name.compaction),
                       name.base.value(), suffix);
}

bool CheckedRanges::cover(std::uint64_t from, std::uint64_t to) const {
    return std::ranges::any_of(
        ranges_, [&](const Range& range) { return range.from <= from && to <= range.to; });
}

void CheckedRanges::add(std::uint64_t from, std::uint64_t to) {
    const auto first =
        std::ranges::find_if(ranges_, [&](const Range& range) { return range.to >= from; });
    const auto last =
        std::find_if(first, ranges_.end(), [&](const Range& range) { return range.from > to; });
    if (first != last) {
        from = std::min(from, first->from);
        to = std::max(to, std::prev(last)->to);
    }
    ranges_.insert(ranges_.erase(first, last), {from, to});
    if (ranges_.size() <= kMost) return;
    ranges_.erase(std::ranges::min_element(
        ranges_, {}, [](const Range& range) { return range.to - range.from; }));
}

Segment::Segment(PartitionPaths paths, const SegmentName& name, IndexOrigin origin)
    : paths_(std::move(paths)),
      name_(name),
      origin_(origin),
      all_checked_(origin == IndexOrigin::kNew) {}

Segment::Indexes& Segment::indexes() {
    base::MutexLock lock(mutex_);
    if (indexes_ == nullptr) {
        indexes_.reset(
            new Indexes{.offsets{path(), origin_}, .times{path(), origin_}, .aborted{origin_}});
    }
    return *indexes_;
}

Result<void> Segment::create(Volume& volume) {
    KAAS_TRY_ASSIGN(file, volume.create(path()));
    base::MutexLock lock(mutex_);
    log_ = std::move(file);
    return {};
}

Result<std::shared_ptr<File>> Segment::log(Volume& volume, Patience patience) {
    {
        base::MutexLock lock(mutex_);
        if (log_ != nullptr && !log_->doubted()) return log_;
    }
    if (patience != Patience::kMayBlock) return fail(ErrorCode::kWouldBlock, path());
    KAAS_TRY_ASSIGN(file, volume.open(path(), OpenMode::kRead));
    KAAS_TRY(offsets().open(volume));
    KAAS_TRY(times().open(volume));
    base::MutexLock lock(mutex_);
    if (log_ != nullptr && !log_->doubted()) return log_;  // somebody was faster
    if (log_ != nullptr) {
        all_checked_ = false;
        checked_.clear();
    }
    log_ = std::move(file);
    return log_;
}

Result<std::shared_ptr<File>> Segment::open_to_write(Volume& volume) {
    KAAS_TRY_ASSIGN(opened, volume.open(path(), OpenMode::kReadWrite));
    std::shared_ptr<File> file = std::move(opened);
    base::MutexLock lock(mutex_);
    // Readers need no other.
    if (log_ == nullptr || !log_->doubted()) log_ = file;
    return file;
}

void Segment::rest() {
    base::MutexLock lock(mutex_);
    if (log_ != nullptr && !log_->doubted()) log_.reset();
}

bool Segment::is_checked(std::uint64_t from, std::uint64_t to) {
    base::MutexLock lock(mutex_);
    return all_checked_ || checked_.cover(from, to);
}

void Segment::set_checked(std::uint64_t from, std::uint64_t to) {
    base::MutexLock lock(mutex_);
    if (!all_checked_) checked_.add(from, to);
}

Result<void> remove_segment(Volume& volume, const PartitionPaths& paths, const SegmentName& name) {
    for (const auto* suffix : {".log", ".index", ".timeindex", ".txnindex", ".snapshot"}) {
        const auto removed = volume.unlink(paths.file(name, suffix));
        if (!removed && removed.error().code != ErrorCode::kNotFound) return removed;
    }
    if (name.compaction == 0) return {};
    auto removed = volume.remove_directory(paths.compaction_directory(name.epoch, name.compaction));
    if (!removed && removed.error().code == ErrorCode::kNotFound) return {};
    return removed;
}

HeaderCursor::HeaderCursor(File& file, const Segment& segment, std::uint64_t position,
                           std::uint64_t end, Patience patience)
    : file_(file), segment_(segment), position_(position), end_(end), patience_(patience) {}

Result<base::ByteView> HeaderCursor::look() {
    const auto known_end = buffer_position_ + buffered_;
    if (position_ < buffer_position_ || position_ + wire::BatchHeader::kBytes > known_end) {
        base::MutableBytes into(buffer_, std::min<std::uint64_t>(kBufferBytes, end_ - position_));
        if (patience_ == Patience::kMayBlock) {
            // Less is there of a file that was shortened; of that, what is whole is good.
            KAAS_TRY_ASSIGN(read, file_.read_at(position_, into));
            if (read < wire::BatchHeader::kBytes) {
                return fail(ErrorCode::kCorrupt,
                            fmt::format("{} at {}: the file ends early, {} bytes were recorded",
                                        segment_.path(), position_, end_));
            }
            into = into.first(read);
        } else {
            KAAS_TRY(read_exactly(file_, position_, into, patience_));
        }
        buffer_position_ = position_;
        buffered_ = into.size();
    }
    return base::ByteView(buffer_, buffered_).subspan(position_ - buffer_position_);
}

Result<std::optional<BatchPlace>> HeaderCursor::next() {
    if (position_ >= end_) return std::nullopt;
    const auto corrupt = [&](std::string_view what) {
        return fail(ErrorCode::kCorrupt,
                    fmt::format("{} at {}: {}", segment_.path(), position_, what));
    };
    if (end_ - position_ < wire::BatchHeader::kBytes) return corrupt("not a whole batch header");
    KAAS_TRY_ASSIGN(bytes, look());
    const auto parsed = wire::BatchHeader::parse(bytes);
    if (!parsed) return corrupt(parsed.error().context);
    if (parsed->size() > end_ - position_) return corrupt("a batch beyond the end");
    header_ = *parsed;
    const BatchPlace place{.position = position_,
                           .bytes = header_.size(),
                           .base_offset = base::Offset{header_.base_offset},
                           .last_offset = base::Offset{header_.last_offset()},
                           .max_timestamp_ms = header_.max_timestamp,
                           .leader_epoch = base::LeaderEpoch{header_.partition_leader_epoch}};
    position_ += place.bytes;
    return place;
}

namespace {

/// No checksum covers a batch's offsets: that they go upwards and stay within the segment is what
/// shows a damaged one, and that only compaction leaves holes. `from` is one behind the batch
/// before, or the segment's base if that was not `seen`.
[[nodiscard]] Result<void> check_order(const BatchPlace& place, const SegmentSpan& span,
                                       base::Offset from, bool seen) {
    const bool gap = seen && span.facts.compaction == 0 && place.base_offset != from;
    if (!gap && place.base_offset >= from && place.last_offset >= place.base_offset &&
        place.last_offset < span.facts.end)
        return {};
    return fail(
        ErrorCode::kCorrupt,
        fmt::format("{} at {}: offsets {} to {}, not within [{}, {})", span.segment->path(),
                    place.position, place.base_offset, place.last_offset, from, span.facts.end));
}

/// The first batch from the cursor on that ends at `offset` or later.
[[nodiscard]] Result<std::optional<BatchPlace>> scan(HeaderCursor& cursor, const SegmentSpan& span,
                                                     base::Offset offset, bool from_start) {
    bool seen = from_start;
    for (auto from = span.facts.base;; seen = true) {
        KAAS_TRY_ASSIGN(place, cursor.next());
        if (!place) return place;
        KAAS_TRY(check_order(*place, span, from, seen));
        if (place->last_offset >= offset) return place;
        from = place->last_offset + 1;
    }
}

/// An index is a hint: where it leads must stand the batch that it promised. Empty when it does
/// not.
[[nodiscard]] Result<std::optional<BatchPlace>> promised(HeaderCursor cursor,
                                                         base::Offset last_offset) {
    auto place = cursor.next();
    if (!place && place.error().code == ErrorCode::kCorrupt) return std::nullopt;
    if (place && *place && (*place)->last_offset != last_offset) return std::nullopt;
    return place;
}

}  // namespace

Result<std::optional<BatchPlace>> locate(Volume& volume, const SegmentSpan& span,
                                         base::Offset offset, Patience patience,
                                         std::optional<std::uint64_t> hint) {
    const auto& facts = span.facts;
    KAAS_TRY_ASSIGN(file, span.segment->log(volume, patience));
    const auto cursor_at = [&](std::uint64_t position) {
        return HeaderCursor(*file, *span.segment, position, facts.bytes, patience);
    };
    auto cursor = cursor_at(hint.value_or(0));
    if (hint) return scan(cursor, span, offset, false);
    KAAS_TRY_ASSIGN(entry, span.segment->offsets().last_where(
                               [&](const OffsetEntry& e) {
                                   return e.relative_offset <= offset - facts.base &&
                                          static_cast<std::uint64_t>(e.position) < facts.bytes;
                               },
                               patience));
    if (!entry) return scan(cursor, span, offset, true);
    auto indexed = cursor_at(static_cast<std::uint64_t>(entry->position));
    KAAS_TRY_ASSIGN(batch, promised(indexed, facts.base + entry->relative_offset));
    return scan(batch ? indexed : cursor, span, offset, !batch);
}

Result<bool> leads_to(Volume& volume, const SegmentSpan& span, const OffsetEntry& entry,
                      Patience patience) {
    const auto position = static_cast<std::uint64_t>(entry.position);
    if (position >= span.facts.bytes) return false;  // of what does not count
    KAAS_TRY_ASSIGN(file, span.segment->log(volume, patience));
    const HeaderCursor cursor(*file, *span.segment, position, span.facts.bytes, patience);
    KAAS_TRY_ASSIGN(batch, promised(cursor, span.facts.base + entry.relative_offset));
    return batch.has_value();
}

Result<Cut> cut_after_whole_batch(Volume& volume, const SegmentSpan& span, std::uint64_t start,
                                  std::uint64_t max_bytes, bool at_least_one, Patience patience) {
    const auto limit = span.facts.bytes;
    if (max_bytes >= limit - start) return Cut{.end = limit};
    const auto wish = start + max_bytes;
    KAAS_TRY_ASSIGN(file, span.segment->log(volume, patience));
    KAAS_TRY_ASSIGN(entry, span.segment->offsets().last_where(
                               [&](const OffsetEntry& e) {
                                   return static_cast<std::uint64_t>(e.position) <= wish;
                               },
                               patience));
    if (entry && static_cast<std::uint64_t>(entry->position) > start) {
        const auto position = static_cast<std::uint64_t>(entry->position);
        const HeaderCursor indexed(*file, *span.segment, position, limit, patience);
        KAAS_TRY_ASSIGN(batch, promised(indexed, span.facts.base + entry->relative_offset));
        if (batch) return Cut{.end = position, .next = batch->base_offset};
    }
    HeaderCursor cursor(*file, *span.segment, start, limit, patience);
    Cut cut{.end = start};
    for (auto from = span.facts.base;;) {
        KAAS_TRY_ASSIGN(place, cursor.next());
        if (!place) return cut;
        const bool is_first = cut.end == start;
        const auto good = check_order(*place, span, from, !is_first);
        if (!good && is_first) return std::unexpected(good.error());
        if (!good || (place->end() > wish && !(is_first && at_least_one))) return cut;
        from = place->last_offset + 1;
        cut = {.end = place->end(), .next = from};
        if (cut.end > wish) return cut;
    }
}

}  // namespace kaas::storage
