#include "storage/journal_format.h"

#include "base/crc32c.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>
#include <system_error>

namespace kaas::storage {
namespace {

constexpr std::size_t kReadBytes = std::size_t{256} << 10;

constexpr std::size_t kLengthAt = 0;
constexpr std::size_t kCrcAt = 4;
constexpr std::size_t kNumberAt = 8;
constexpr std::size_t kTopicAt = 16;
constexpr std::size_t kPartitionAt = 32;
constexpr std::size_t kEpochAt = 36;
constexpr std::size_t kBaseAt = 40;
constexpr std::size_t kEndAt = 48;

[[nodiscard]] JournalExtent parse_header(base::ByteView header) {
    const auto* at = header.data();
    JournalExtent extent;
    std::memcpy(extent.key.partition.topic.uuid.bytes.data(), at + kTopicAt,
                extent.key.partition.topic.uuid.bytes.size());
    extent.key.partition.partition =
        base::PartitionId{base::load_be<std::int32_t>(at + kPartitionAt)};
    extent.key.epoch = base::LeaderEpoch{base::load_be<std::int32_t>(at + kEpochAt)};
    extent.base = base::Offset{base::load_be<std::int64_t>(at + kBaseAt)};
    extent.end = base::Offset{base::load_be<std::int64_t>(at + kEndAt)};
    extent.bytes = base::load_be<std::uint32_t>(at + kLengthAt);
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

JournalHeader encode_journal_header(std::uint64_t file_number, const JournalEntry& entry) {
    JournalHeader header{};
    auto* at = header.data();
    base::store_be(at + kLengthAt, static_cast<std::uint32_t>(entry.bytes()));
    base::store_be(at + kNumberAt, file_number);
    const auto& topic = entry.key.partition.topic.uuid.bytes;
    std::memcpy(at + kTopicAt, topic.data(), topic.size());
    base::store_be(at + kPartitionAt, entry.key.partition.partition.value());
    base::store_be(at + kEpochAt, entry.key.epoch.value());
    base::store_be(at + kBaseAt, entry.base.value());
    base::store_be(at + kEndAt, entry.end.value());
    auto crc = base::crc32c(base::ByteView(header).subspan(kNumberAt));
    for (const auto& batch : entry.batches) crc = base::crc32c(batch, crc);
    base::store_be(at + kCrcAt, crc);
    return header;
}

JournalFileReader::JournalFileReader(File& file, std::uint64_t number)
    : file_(file), number_(number) {}

Result<base::ByteView> JournalFileReader::hold(std::size_t bytes) {
    const auto from = position_ - buffer_at_;
    if (buffer_.size() < from + bytes && buffer_at_ + buffer_.size() < *size_) {
        const auto left = *size_ - position_;
        buffer_.resize(std::min<std::uint64_t>(std::max(bytes, kReadBytes), left));
        buffer_at_ = position_;
        KAAS_TRY_ASSIGN(got, file_.read_at(position_, buffer_));
        buffer_.resize(got);
    }
    return base::ByteView(buffer_).subspan(position_ - buffer_at_);
}

Result<std::optional<JournalExtent>> JournalFileReader::next() {
    if (!size_) {
        KAAS_TRY_ASSIGN(size, file_.size());
        size_ = size;
        KAAS_TRY_ASSIGN(magic, hold(kJournalMagic.size()));
        if (magic.size() < kJournalMagic.size() ||
            base::as_text(magic.first(kJournalMagic.size())) != kJournalMagic) {
            size_ = 0;
            return std::nullopt;
        }
        position_ = kJournalMagic.size();
    }
    if (position_ + kJournalEntryHeader > *size_) return std::nullopt;
    KAAS_TRY_ASSIGN(header, hold(kJournalEntryHeader));
    if (header.size() < kJournalEntryHeader) return std::nullopt;
    auto extent = parse_header(header);
    // Before memory is taken for what may be no entry at all.
    const auto number = base::load_be<std::uint64_t>(header.data() + kNumberAt);
    if (extent.bytes == 0 || number != number_) return std::nullopt;
    const auto whole = kJournalEntryHeader + extent.bytes;
    if (whole > *size_ - position_) return std::nullopt;
    KAAS_TRY_ASSIGN(held, hold(whole));
    if (held.size() < whole) return std::nullopt;
    const auto crc = base::crc32c(held.first(whole).subspan(kNumberAt));
    if (crc != base::load_be<std::uint32_t>(held.data() + kCrcAt)) return std::nullopt;
    if (extent.base < base::Offset{0} || extent.end <= extent.base) return std::nullopt;
    extent.position = position_ + kJournalEntryHeader;
    position_ += whole;
    return extent;
}

}  // namespace kaas::storage
