#include "storage/transaction_marker.h"

#include "base/bytes.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace kaas::storage {
namespace {

/// The record of a marker: its key is a version and a `ControlRecordType`, its value a version and
/// the coordinator's epoch.
constexpr std::size_t kKeyBytes = 4;
constexpr std::size_t kValueBytes = 6;
constexpr std::int16_t kAbortType = 0;
constexpr std::int16_t kCommitType = 1;

}  // namespace

std::vector<std::byte> encode_marker(const Marker& marker, std::int64_t now_ms) {
    std::array<std::byte, kKeyBytes> key{};
    std::array<std::byte, kValueBytes> value{};
    base::store_be(key.data() + 2, marker.commit ? kCommitType : kAbortType);
    base::store_be(value.data() + 2, marker.coordinator_epoch);
    wire::BatchBuilder batch({.producer_id = marker.producer.value(),
                              .producer_epoch = marker.epoch.value(),
                              .transactional = true,
                              .control = true});
    batch.add(now_ms, base::ByteView(key), base::ByteView(value));
    return batch.build();
}

Result<std::optional<ParsedMarker>> parse_marker(const wire::BatchView& batch,
                                                 wire::DecodeSite& site) {
    auto reader = wire::RecordReader::open(batch, site);
    if (!reader) return fail(ErrorCode::kCorrupt, reader.error().context);
    wire::Record record;
    const auto more = reader->next(record);
    if (!more) return fail(ErrorCode::kCorrupt, more.error().context);
    if (!*more || !record.key || record.key->size() < kKeyBytes) return std::nullopt;
    if (!record.value || record.value->size() < kValueBytes) return std::nullopt;
    const auto coordinator_epoch = base::load_be<std::int32_t>(record.value->data() + 2);
    switch (base::load_be<std::int16_t>(record.key->data() + 2)) {
        case kAbortType: return ParsedMarker{TransactionEnd::kAbort, coordinator_epoch};
        case kCommitType: return ParsedMarker{TransactionEnd::kCommit, coordinator_epoch};
        default: return std::nullopt;
    }
}

}  // namespace kaas::storage
