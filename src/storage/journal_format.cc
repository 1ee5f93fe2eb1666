#include "storage/journal_format.h"

#include "base/crc32c.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

namespace kaas::storage {
namespace {

constexpr std::size_t kReadBytes = std::size_t{256} << 10;

constexpr std::string_view kMarker = "kjne";
constexpr std::size_t kLengthAt = 4;
constexpr std::size_t kBatchesCrcAt = 8;
constexpr std::size_t kNumberAt = 12;
constexpr std::size_t kSyncedAt = 20;
constexpr std::size_t kPreviousAt = 28;
constexpr std::size_t kPreviousEndAt = 36;
constexpr std::size_t kTopicAt = 44;
constexpr std::size_t kPartitionAt = 60;
constexpr std::size_t kEpochAt = 64;
constexpr std::size_t kBaseAt = 68;
constexpr std::size_t kEndAt = 76;
constexpr std::size_t kHeaderCrcAt = 84;
static_assert(kHeaderCrcAt + 4 == kJournalEntryHeader);

[[nodiscard]] std::uint32_t header_crc(base::ByteView header) {
    return base::crc32c(header.first(kHeaderCrcAt));
}

/// Empty when that is no header, or a damaged one.
[[nodiscard]] std::optional<JournalExtent> parse_header(base::ByteView header) {
    const auto* at = header.data();
    if (base::as_text(header.first(kMarker.size())) != kMarker) return std::nullopt;
    if (header_crc(header) != base::load_be<std::uint32_t>(at + kHeaderCrcAt)) return std::nullopt;
    JournalExtent extent;
    extent.place = {.number = base::load_be<std::uint64_t>(at + kNumberAt),
                    .synced = base::load_be<std::uint64_t>(at + kSyncedAt),
                    .previous = base::load_be<std::uint64_t>(at + kPreviousAt),
                    .previous_end = base::load_be<std::uint64_t>(at + kPreviousEndAt)};
    std::memcpy(extent.key.partition.topic.uuid.bytes.data(), at + kTopicAt,
                extent.key.partition.topic.uuid.bytes.size());
    extent.key.partition.partition =
        base::PartitionId{base::load_be<std::int32_t>(at + kPartitionAt)};
    extent.key.epoch = base::LeaderEpoch{base::load_be<std::int32_t>(at + kEpochAt)};
    extent.base = base::Offset{base::load_be<std::int64_t>(at + kBaseAt)};
    extent.end = base::Offset{base::load_be<std::int64_t>(at + kEndAt)};
    extent.bytes = base::load_be<std::uint32_t>(at + kLengthAt);
    if (extent.base < base::Offset{0} || extent.end <= extent.base) return std::nullopt;
    return extent;
}

}  // namespace

std::optional<JournalKey> journal_key(std::string_view directory, base::LeaderEpoch epoch) {
    const auto slash = directory.rfind('/');
    if (slash == std::string_view::npos) return std::nullopt;
    const auto topic = directory.substr(0, slash);
    const auto dot = topic.rfind('.');
    if (dot == std::string_view::npos) return std::nullopt;
    const auto id = base::Uuid::parse(topic.substr(dot + 1));
    const auto number = directory.substr(slash + 1);
    std::int32_t partition = -1;
    const auto parsed = std::from_chars(number.data(), number.data() + number.size(), partition);
    if (!id || parsed.ec != std::errc{} || parsed.ptr != number.data() + number.size()) {
        return std::nullopt;
    }
    return JournalKey{.partition = {.topic = {*id}, .partition = base::PartitionId{partition}},
                      .epoch = epoch};
}

std::uint64_t JournalEntry::bytes() const {
    std::uint64_t sum = 0;
    for (const auto& batch : batches) sum += batch.size();
    return sum;
}

JournalHeader encode_journal_header(const JournalPlace& place, const JournalEntry& entry) {
    JournalHeader header{};
    auto* at = header.data();
    std::memcpy(at, kMarker.data(), kMarker.size());
    base::store_be(at + kLengthAt, static_cast<std::uint32_t>(entry.bytes()));
    std::uint32_t crc = 0;
    for (const auto& batch : entry.batches) crc = base::crc32c(batch, crc);
    base::store_be(at + kBatchesCrcAt, crc);
    base::store_be(at + kNumberAt, place.number);
    base::store_be(at + kSyncedAt, place.synced);
    base::store_be(at + kPreviousAt, place.previous);
    base::store_be(at + kPreviousEndAt, place.previous_end);
    const auto& topic = entry.key.partition.topic.uuid.bytes;
    std::memcpy(at + kTopicAt, topic.data(), topic.size());
    base::store_be(at + kPartitionAt, entry.key.partition.partition.value());
    base::store_be(at + kEpochAt, entry.key.epoch.value());
    base::store_be(at + kBaseAt, entry.base.value());
    base::store_be(at + kEndAt, entry.end.value());
    base::store_be(at + kHeaderCrcAt, header_crc(header));
    return header;
}

Result<base::ByteView> JournalFileReader::hold(std::size_t bytes) {
    const auto from = position_ - buffer_at_;
    if (position_ < buffer_at_ ||
        (buffer_.size() < from + bytes && buffer_at_ + buffer_.size() < *size_)) {
        const auto left = *size_ - position_;
        buffer_.resize(std::min<std::uint64_t>(std::max(bytes, kReadBytes), left));
        buffer_at_ = position_;
        KAAS_TRY_ASSIGN(got, file_.read_at(position_, buffer_));
        buffer_.resize(got);
    }
    return base::ByteView(buffer_).subspan(position_ - buffer_at_);
}

Result<void> JournalFileReader::begin() {
    if (size_) return {};
    KAAS_TRY_ASSIGN(size, file_.size());
    size_ = size;
    KAAS_TRY_ASSIGN(magic, hold(kJournalMagic.size()));
    // It is there before anybody is told of the file.
    if (!base::as_text(magic).starts_with(kJournalMagic)) {
        return fail(ErrorCode::kCorrupt, "not the beginning of a journal's file");
    }
    position_ = kJournalMagic.size();
    return {};
}

Result<std::optional<JournalExtent>> JournalFileReader::header() {
    KAAS_TRY_ASSIGN(held, hold(kJournalEntryHeader));
    if (held.size() < kJournalEntryHeader) return std::nullopt;
    auto extent = parse_header(held.first(kJournalEntryHeader));
    if (!extent || extent->place.number != number_) return std::nullopt;
    // Before memory is taken for what may be no entry at all.
    if (extent->bytes > *size_ - position_ - kJournalEntryHeader) return std::nullopt;
    if (extent->place.synced > position_) return std::nullopt;
    extent->position = position_ + kJournalEntryHeader;
    return extent;
}

Result<std::optional<JournalExtent>> JournalFileReader::next() {
    KAAS_TRY(begin());
    KAAS_TRY_ASSIGN(extent, header());
    if (!extent) return std::nullopt;
    const auto whole = kJournalEntryHeader + extent->bytes;
    KAAS_TRY_ASSIGN(held, hold(whole));
    if (held.size() < whole) return std::nullopt;
    const auto crc = base::crc32c(held.first(whole).subspan(kJournalEntryHeader));
    if (crc != base::load_be<std::uint32_t>(held.data() + kBatchesCrcAt)) return std::nullopt;
    position_ += whole;
    return extent;
}

Result<std::optional<JournalExtent>> JournalFileReader::skip() {
    KAAS_TRY_ASSIGN(extent, header());
    if (!extent) {
        KAAS_TRY(find());
        return std::nullopt;
    }
    position_ += kJournalEntryHeader + extent->bytes;
    extent->whole = false;
    return extent;
}

Result<void> JournalFileReader::look_behind(std::uint64_t position,
                                            const std::function<void(const JournalPlace&)>& look) {
    KAAS_TRY(begin());
    const auto back = std::exchange(position_, std::min(position, *size_));
    for (;;) {
        KAAS_TRY_ASSIGN(extent, find());
        if (!extent) break;
        look(extent->place);
        position_ += kJournalEntryHeader + extent->bytes;
    }
    position_ = back;
    return {};
}

Result<std::optional<JournalExtent>> JournalFileReader::find() {
    for (;;) {
        KAAS_TRY_ASSIGN(held, hold(kJournalEntryHeader));
        if (held.size() < kJournalEntryHeader) break;
        const auto found = base::as_text(held).find(kMarker);
        if (found == std::string_view::npos) {
            position_ += held.size() - kMarker.size() + 1;  // it may begin here
            continue;
        }
        position_ += found;
        KAAS_TRY_ASSIGN(extent, header());
        if (extent) return extent;
        ++position_;
    }
    position_ = *size_;
    return std::nullopt;
}

Result<JournalContents> read_journal_file(JournalFileReader& reader, std::uint64_t proven) {
    JournalContents contents;
    for (;;) {
        KAAS_TRY_ASSIGN(entry, reader.next());
        const auto at = reader.position();
        if (!entry && at >= proven) break;
        if (!entry) {
            KAAS_TRY_ASSIGN(damaged, reader.skip());
            if (!damaged) contents.gaps.push_back(at);
            if (!damaged && reader.at_end()) break;
            entry = damaged;
        }
        if (entry) contents.entries.push_back(*entry);
    }
    contents.end = reader.position();
    return contents;
}

}  // namespace kaas::storage
