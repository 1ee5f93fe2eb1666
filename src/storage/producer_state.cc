#include "storage/producer_state.h"

#include "base/crc32c.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace kaas::storage {
namespace {

constexpr std::int32_t kLastSequence = std::numeric_limits<std::int32_t>::max();

/// The snapshot file: version, checksum of what follows it, entries (Apache
/// `ProducerSnapshot.json`).
constexpr std::int16_t kSnapshotVersion = 1;
constexpr std::size_t kSnapshotCrcAt = 2;
constexpr std::size_t kSnapshotEntriesAt = 6;
constexpr std::size_t kSnapshotEntryBytes = 8 + 2 + 4 + 8 + 4 + 8 + 4 + 8;

/// Widths of a row's numbers in the file.
constexpr std::array<std::size_t, 8> kRowBytes = {8, 2, 4, 8, 4, 8, 4, 8};

std::byte* put_number(std::byte* to, std::size_t bytes, std::int64_t value) {
    switch (bytes) {
        case 2: base::store_be(to, static_cast<std::int16_t>(value)); break;
        case 4: base::store_be(to, static_cast<std::int32_t>(value)); break;
        default: base::store_be(to, value);
    }
    return to + bytes;
}

[[nodiscard]] std::int64_t take_number(const std::byte*& from, std::size_t bytes) {
    const auto* at = std::exchange(from, from + bytes);
    switch (bytes) {
        case 2: return base::load_be<std::int16_t>(at);
        case 4: return base::load_be<std::int32_t>(at);
        default: return base::load_be<std::int64_t>(at);
    }
}

/// From this `transaction.version` on each transaction has an epoch of its own (KIP-890).
constexpr std::int8_t kBumpingVersion = 2;
constexpr base::ProducerEpoch kLastEpoch{std::numeric_limits<std::int16_t>::max()};

/// One counter for all logs: what was shown to a log that is gone must mean nothing to the next.
[[nodiscard]] VerificationGuard next_guard() {
    static std::atomic<std::uint64_t> last{0};
    return {last.fetch_add(1, std::memory_order_relaxed) + 1};
}

[[nodiscard]] bool follows(std::int32_t last, std::int32_t next) {
    return std::int64_t{next} == std::int64_t{last} + 1 || (next == 0 && last == kLastSequence);
}

}  // namespace

std::optional<AbortedTransaction> CompletedTransaction::index_entry() const {
    if (!aborted) return std::nullopt;
    return AbortedTransaction{producer_id, first_offset, last_offset, last_stable_offset};
}

std::int32_t ProducedBatch::first_sequence() const {
    constexpr auto kRange = std::int64_t{kLastSequence} + 1;
    const auto first = std::int64_t{last_sequence} - offset_delta;
    return static_cast<std::int32_t>(first < 0 ? first + kRange : first);
}

void ProducerEntry::set_epoch(base::ProducerEpoch next) {
    if (next == epoch) return;
    epoch = next;
    count_ = 0;
}

void ProducerEntry::add(const ProducedBatch& batch) {
    if (count_ == kRemembered) {
        std::move(batches_.begin() + 1, batches_.end(), batches_.begin());
        --count_;
    }
    batches_[count_++] = batch;
}

bool operator==(const ProducerEntry& a, const ProducerEntry& b) {
    return a.epoch == b.epoch && a.coordinator_epoch == b.coordinator_epoch &&
           a.last_timestamp_ms == b.last_timestamp_ms && a.seen_ms == b.seen_ms &&
           a.transaction_start == b.transaction_start && a.changed_at == b.changed_at &&
           std::ranges::equal(a.batches(), b.batches());
}

const ProducerEntry* ProducerState::find(base::ProducerId producer) const {
    const auto found = producers_.find(producer);
    return found == producers_.end() ? nullptr : &found->second;
}

bool ProducerState::is_open(base::ProducerId producer, base::ProducerEpoch epoch) const {
    const auto* known = find(producer);
    return known != nullptr && known->transaction_start && known->epoch == epoch;
}

const ProducerState::Verifying* ProducerState::verifying(base::ProducerId producer) const {
    if (transactions_ == nullptr) return nullptr;
    const auto found = transactions_->verifying.find(producer);
    return found == transactions_->verifying.end() ? nullptr : &found->second;
}

ProducerState::Transactions& ProducerState::transactions() {
    if (transactions_ == nullptr) transactions_ = std::make_unique<Transactions>();
    return *transactions_;
}

Result<Verification> ProducerState::begin_verification(base::ProducerId producer,
                                                       base::ProducerEpoch epoch,
                                                       std::int32_t base_sequence,
                                                       bool supports_epoch_bump,
                                                       std::int64_t now_ms) {
    if (const auto* known = find(producer); known != nullptr && epoch < known->epoch) {
        return fail(
            ErrorCode::kInvalidProducerEpoch,
            fmt::format("producer {} epoch {}: known is {}", producer, epoch, known->epoch));
    }
    if (is_open(producer, epoch)) return Ongoing{};
    const auto [place, is_new] = transactions().verifying.try_emplace(producer);
    auto& entry = place->second;
    if (is_new) {
        entry = {.guard = next_guard(),
                 .since_ms = now_ms,
                 .lowest_sequence = base_sequence,
                 .epoch = epoch,
                 .supports_epoch_bump = supports_epoch_bump};
    }
    if (epoch > entry.epoch || (epoch == entry.epoch && base_sequence < entry.lowest_sequence)) {
        entry.epoch = epoch;
        entry.lowest_sequence = base_sequence;
    }
    return entry.guard;
}

Result<std::optional<ProducerState::Duplicate>> ProducerState::classify(
    const wire::BatchHeader& batch, std::optional<VerificationGuard> shown) const {
    const auto* known = find(base::ProducerId{batch.producer_id});
    if (known != nullptr && base::ProducerEpoch{batch.producer_epoch} == known->epoch) {
        for (const auto& earlier : known->batches()) {
            if (earlier.first_sequence() == batch.base_sequence &&
                earlier.last_sequence == batch.last_sequence()) {
                return Duplicate{earlier.first_offset(), earlier.last_offset, earlier.timestamp_ms};
            }
        }
    }
    KAAS_TRY(check_verified(batch, shown));
    KAAS_TRY(check_order(batch));
    if (known != nullptr && known->transaction_start && !batch.transactional()) {
        return fail(ErrorCode::kInvalidTxnState,
                    fmt::format("producer {} has a transaction since offset {}, and sends without",
                                batch.producer_id, *known->transaction_start));
    }
    return std::nullopt;
}

Result<void> ProducerState::check_verified(const wire::BatchHeader& batch,
                                           std::optional<VerificationGuard> shown) const {
    const base::ProducerId producer{batch.producer_id};
    const base::ProducerEpoch epoch{batch.producer_epoch};
    if (!batch.transactional() || is_open(producer, epoch)) return {};
    const auto* known = find(producer);
    if (known != nullptr && epoch < known->epoch) return {};  // `check_order` says so
    if (!shown) return {};
    const auto* asked = verifying(producer);
    if (asked != nullptr && asked->guard == *shown) return {};
    return fail(ErrorCode::kInvalidTxnState,
                fmt::format("producer {} epoch {} begins a transaction that was not verified",
                            producer, epoch));
}

Result<void> ProducerState::check_order(const wire::BatchHeader& batch) const {
    const base::ProducerId producer{batch.producer_id};
    const auto* known = find(producer);
    const auto known_epoch = known == nullptr ? base::kNoProducerEpoch : known->epoch;
    const base::ProducerEpoch epoch{batch.producer_epoch};
    const auto refuse = [&](ErrorCode code) {
        return fail(code,
                    fmt::format("producer {} epoch {}: sequence {}, known are epoch {} up to {}",
                                batch.producer_id, epoch, batch.base_sequence, known_epoch,
                                known == nullptr ? -1 : known->last_sequence()));
    };
    if (epoch < known_epoch) return refuse(ErrorCode::kInvalidProducerEpoch);
    if (const auto* asked = verifying(producer); asked != nullptr) {
        const bool has_batches = known != nullptr && !known->batches().empty();
        const bool skips_first =
            asked->supports_epoch_bump && !has_batches && batch.base_sequence != 0;
        if (skips_first || batch.base_sequence > asked->lowest_sequence)
            return refuse(ErrorCode::kOutOfOrderSequence);
    }
    if (known_epoch == base::kNoProducerEpoch) return {};  // any first sequence is taken
    const bool in_order = epoch == known_epoch
                              ? follows(known->last_sequence(), batch.base_sequence)
                              : batch.base_sequence == 0;
    if (!in_order) return refuse(ErrorCode::kOutOfOrderSequence);
    return {};
}

Result<void> ProducerState::check_marker(const Marker& marker) const {
    const auto* known = find(marker.producer);
    if (known == nullptr) return {};
    const bool bumps = marker.transaction_version >= kBumpingVersion;
    // Of the same epoch, a marker repeats one that came through, or the epochs are used up.
    const bool may_repeat = !known->transaction_start || marker.epoch == kLastEpoch;
    const bool good =
        marker.epoch > known->epoch || (marker.epoch == known->epoch && (!bumps || may_repeat));
    if (!good) {
        return fail(
            ErrorCode::kInvalidProducerEpoch,
            fmt::format("producer {}: a marker under epoch {}, known is {} (version {})",
                        marker.producer, marker.epoch, known->epoch, marker.transaction_version));
    }
    if (marker.coordinator_epoch < known->coordinator_epoch) {
        return fail(
            ErrorCode::kTransactionCoordinatorFenced,
            fmt::format("producer {}: a marker of coordinator epoch {}, known is {}",
                        marker.producer, marker.coordinator_epoch, known->coordinator_epoch));
    }
    return {};
}

bool ProducerState::record(const wire::BatchHeader& batch, std::int64_t now_ms) {
    const base::ProducerId id{batch.producer_id};
    auto& entry = producers_[id];
    entry.set_epoch(base::ProducerEpoch{batch.producer_epoch});
    entry.add({.last_sequence = batch.last_sequence(),
               .offset_delta = batch.last_offset_delta,
               .last_offset = base::Offset{batch.last_offset()},
               .timestamp_ms = batch.max_timestamp});
    entry.last_timestamp_ms = batch.max_timestamp;
    entry.changed_at = base::Offset{batch.last_offset()};
    entry.seen_ms = now_ms;
    if (!batch.transactional()) return false;
    transactions().verifying.erase(id);
    if (entry.transaction_start) return false;
    entry.transaction_start = base::Offset{batch.base_offset};
    transactions().ongoing.emplace(*entry.transaction_start, id);
    return true;
}

std::optional<CompletedTransaction> ProducerState::end_transaction(const Marker& marker,
                                                                   base::Offset marker_offset,
                                                                   std::int64_t timestamp_ms,
                                                                   std::int64_t now_ms) {
    auto& entry = producers_[marker.producer];
    entry.set_epoch(marker.epoch);
    entry.coordinator_epoch = marker.coordinator_epoch;
    entry.last_timestamp_ms = timestamp_ms;
    entry.changed_at = marker_offset;
    entry.seen_ms = now_ms;
    // A marker under a bumped epoch may come behind the verification of the next transaction, which
    // has that epoch already.
    if (const auto* asked = verifying(marker.producer);
        asked != nullptr && !(asked->supports_epoch_bump && asked->epoch == marker.epoch)) {
        transactions().verifying.erase(marker.producer);
    }
    if (!entry.transaction_start) return std::nullopt;
    CompletedTransaction completed{.producer_id = marker.producer,
                                   .first_offset = *entry.transaction_start,
                                   .last_offset = marker_offset,
                                   .last_stable_offset = marker_offset + 1,
                                   .aborted = !marker.commit};
    entry.transaction_start.reset();
    auto& [_, ongoing, ending] = transactions();
    ongoing.erase(completed.first_offset);
    if (!ongoing.empty()) completed.last_stable_offset = ongoing.begin()->first;
    ending.emplace(completed.first_offset, marker_offset);
    return completed;
}

std::optional<base::Offset> ProducerState::first_unstable(base::Offset high_watermark) {
    if (transactions_ == nullptr) return std::nullopt;
    auto& [_, ongoing, ending] = *transactions_;
    std::erase_if(ending, [&](const auto& ended) { return ended.second < high_watermark; });
    std::optional<base::Offset> first;
    if (!ongoing.empty()) first = ongoing.begin()->first;
    if (!ending.empty() && (!first || ending.begin()->first < *first))
        first = ending.begin()->first;
    return first;
}

std::optional<std::int64_t> ProducerState::longest_open_ms() const {
    std::optional<std::int64_t> longest;
    if (transactions_ == nullptr) return longest;
    for (const auto& [offset, producer] : transactions_->ongoing) {
        const auto seen_ms = producers_.at(producer).seen_ms;
        longest = std::min(longest.value_or(seen_ms), seen_ms);
    }
    return longest;
}

void ProducerState::expire(std::int64_t now_ms, std::int64_t silence_ms) {
    std::erase_if(producers_, [&](const auto& known) {
        const auto& entry = known.second;
        return !entry.transaction_start && now_ms - entry.seen_ms >= silence_ms;
    });
    if (transactions_ == nullptr) return;
    std::erase_if(transactions_->verifying,
                  [&](const auto& asked) { return now_ms - asked.second.since_ms >= silence_ms; });
}

std::vector<ProducerImage> ProducerState::images() const {
    std::vector<ProducerImage> images;
    images.reserve(producers_.size());
    for (const auto& [id, entry] : producers_) images.push_back({id, entry});
    return images;
}

void ProducerState::load(std::span<const ProducerImage> images) {
    producers_.clear();
    transactions_.reset();
    for (const auto& [id, entry] : images) {
        producers_.insert_or_assign(id, entry);
        if (entry.transaction_start) transactions().ongoing.emplace(*entry.transaction_start, id);
    }
}

std::vector<std::byte> encode_snapshot(std::span<const ProducerImage> producers) {
    std::vector<std::byte> bytes(kSnapshotEntriesAt + 4 + producers.size() * kSnapshotEntryBytes);
    auto* to = put_number(bytes.data(), 2, kSnapshotVersion);
    to = put_number(to + 4, 4, static_cast<std::int64_t>(producers.size()));
    for (const auto& [id, entry] : producers) {
        const auto last = entry.batches().empty() ? ProducedBatch{} : entry.batches().back();
        const std::array<std::int64_t, 8> row = {
            id.value(),
            entry.epoch.value(),
            last.last_sequence,
            last.last_offset.value(),
            last.offset_delta,
            entry.last_timestamp_ms,
            entry.coordinator_epoch,
            entry.transaction_start.value_or(base::Offset{-1}).value()};
        for (std::size_t i = 0; i < row.size(); ++i) to = put_number(to, kRowBytes[i], row[i]);
    }
    base::store_be(bytes.data() + kSnapshotCrcAt,
                   base::crc32c(base::ByteView(bytes).subspan(kSnapshotEntriesAt)));
    return bytes;
}

Result<std::vector<ProducerImage>> decode_snapshot(base::ByteView snapshot) {
    const auto corrupt = [](const std::string& why) {
        return fail(ErrorCode::kCorrupt, "producer snapshot: " + why);
    };
    if (snapshot.size() < kSnapshotEntriesAt + 4) return corrupt("too short");
    const auto version = base::load_be<std::int16_t>(snapshot.data());
    if (version != kSnapshotVersion) return corrupt(fmt::format("version {}", version));
    const auto stored = base::load_be<std::uint32_t>(snapshot.data() + kSnapshotCrcAt);
    if (stored != base::crc32c(snapshot.subspan(kSnapshotEntriesAt))) return corrupt("checksum");
    const auto count = base::load_be<std::int32_t>(snapshot.data() + kSnapshotEntriesAt);
    const auto entries = snapshot.subspan(kSnapshotEntriesAt + 4);
    if (count < 0 || entries.size() != static_cast<std::size_t>(count) * kSnapshotEntryBytes) {
        return corrupt(fmt::format("{} entries in {} bytes", count, entries.size()));
    }
    std::vector<ProducerImage> producers(static_cast<std::size_t>(count));
    const auto* from = entries.data();
    for (auto& [id, entry] : producers) {
        std::array<std::int64_t, 8> row;
        for (std::size_t i = 0; i < row.size(); ++i) row[i] = take_number(from, kRowBytes[i]);
        const auto [producer, epoch, sequence, offset, delta, timestamp, coordinator, start] = row;
        id = base::ProducerId{producer};
        entry.epoch = base::ProducerEpoch{static_cast<std::int16_t>(epoch)};
        entry.last_timestamp_ms = timestamp;
        entry.coordinator_epoch = static_cast<std::int32_t>(coordinator);
        entry.changed_at = base::Offset{offset};
        if (offset >= 0) {
            entry.add({.last_sequence = static_cast<std::int32_t>(sequence),
                       .offset_delta = static_cast<std::int32_t>(delta),
                       .last_offset = base::Offset{offset},
                       .timestamp_ms = timestamp});
        }
        if (start >= 0) entry.transaction_start = base::Offset{start};
    }
    return producers;
}

}  // namespace kaas::storage
