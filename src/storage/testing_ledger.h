#pragma once

#include "base/bytes.h"
#include "storage/error.h"
#include "storage/file_slice.h"
#include "storage/producer_state.h"
#include "storage/sparse_index.h"
#include "storage/transaction_marker.h"
#include "wire/record_batch.h"
#include "wire/records.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kaas::storage::testing {

/// One record as its producer sends it.
struct SentRecord {
    std::string name;  ///< producer and sequence, once in all the world
    std::string key;
    std::optional<std::string> value;  ///< none: the key is deleted
};

/// One record as a consumer sees it.
struct Seen {
    std::int64_t offset;
    std::int64_t timestamp_ms;
    std::string name{};
    std::string key{};
    std::optional<std::string> value{};
    bool marker = false;  ///< of a transaction; its name says all of it

    friend bool operator==(const Seen&, const Seen&) = default;
};

/// How a marker is called.
[[nodiscard]] inline std::string name_of(const Marker& marker) {
    return fmt::format("marker {}.{}.{} {}", marker.producer, marker.epoch,
                       marker.coordinator_epoch, marker.commit ? "commit" : "abort");
}

/// One transaction, as its coordinator and its readers know it.
struct Transaction {
    enum class Decision { kNone, kCommit, kAbort } decision = Decision::kNone;
    std::int64_t first_offset = -1;  ///< once a record of it was seen
    bool ended = false;              ///< its marker was seen
};

/// One batch of a producer.
struct Sent {
    std::size_t producer;
    std::int32_t sequence;  ///< the producer's own count; on the wire only if it is idempotent
    std::int64_t timestamp_ms;
    std::vector<SentRecord> records;
    enum class Standing {
        kUnknown,  ///< not answered, or with an error
        kWritten,  ///< survives the process
        kDurable,  ///< survives the machine
    } standing = Standing::kUnknown;
    std::int64_t offset = -1;  ///< once it was answered
    /// Of a transactional producer, which begins at sequence 0 again under each epoch.
    Transaction* transaction = nullptr;
    std::int16_t epoch = 0;
    std::int32_t wire_sequence = 0;

    /// Producer and sequence, for messages.
    [[nodiscard]] std::string name() const { return fmt::format("{}.{}", producer, sequence); }
};

/// The model of a partition: what its producers sent and were answered, and what its consumers saw.
/// A function that checks gives the violation, if there is one.
///
/// Of a compacted partition any record may go for which a later one of its key was seen, and the
/// last one of its key if it deletes the key and is old enough; for ever, and nothing else.
class Ledger {
public:
    using Violation = std::optional<std::string>;
    /// What to put into a record: one of a few keys, and so many bytes or none at all.
    struct Filling {
        int key;
        std::optional<std::size_t> bytes;
    };

    static constexpr std::size_t kTransactional = 4;  ///< from here on
    static constexpr std::size_t kProducers = 6;
    /// A record may say that it is so much older than its batch's sending.
    static constexpr std::int64_t kTimestampSlackMs = 60;

    /// `keeps_deletions_ms`: `delete.retention.ms` of a compacted partition.
    explicit Ledger(std::optional<std::int64_t> keeps_deletions_ms)
        : keeps_deletions_ms_(keeps_deletions_ms) {}

    /// The others never repeat anything.
    [[nodiscard]] static bool idempotent(std::size_t producer) { return producer < 2; }

    /// The next batch of a producer.
    Sent& issue(std::size_t producer, std::int64_t timestamp_ms,
                const std::vector<Filling>& fillings) {
        auto& next = next_sequence_[producer];
        Sent batch{
            .producer = producer, .sequence = next, .timestamp_ms = timestamp_ms, .records = {}};
        for (const auto& [key, bytes] : fillings) {
            SentRecord record{.name = fmt::format("{}.{}", producer, next),
                              .key = fmt::format("key-{}", key),
                              .value = {}};
            if (bytes) record.value = std::string(*bytes, '*');
            known_[record.name] = {producer, next++};
            batch.records.push_back(std::move(record));
        }
        return sent_.emplace_back(std::move(batch));
    }

    // ---- Transactions.

    Transaction& begin_transaction() { return transactions_.emplace_back(); }
    /// A batch of it; its records are known by that from now on.
    void join(Sent& batch, Transaction& transaction) {
        batch.transaction = &transaction;
        for (const auto& record : batch.records) transaction_of_[record.name] = &transaction;
    }
    void decide(Transaction& transaction, const Marker& marker) {
        transaction.decision =
            marker.commit ? Transaction::Decision::kCommit : Transaction::Decision::kAbort;
        transaction_of_[name_of(marker)] = &transaction;
    }
    [[nodiscard]] bool aborted(const std::string& name) const {
        const auto found = transaction_of_.find(name);
        return found != transaction_of_.end() &&
               found->second->decision == Transaction::Decision::kAbort;
    }
    /// Where readers of committed data have to stop; empty when something was deleted unseen.
    [[nodiscard]] std::optional<std::int64_t> stable_end() const {
        if (std::ranges::any_of(places_, [](const Place& p) { return p.record.name.empty(); }))
            return std::nullopt;
        auto least = end();
        for (const auto& one : transactions_) {
            if (one.first_offset >= 0 && !one.ended) least = std::min(least, one.first_offset);
        }
        return std::max(least, start_);
    }
    /// What they have to find up to there.
    [[nodiscard]] std::vector<std::string> committed(std::int64_t stable) const {
        std::vector<std::string> names;
        for (const auto& [record, gone] : places_) {
            if (record.offset < start_ || record.offset >= stable) continue;
            if (!gone && !record.marker && !aborted(record.name)) names.push_back(record.name);
        }
        return names;
    }

    [[nodiscard]] std::size_t unanswered(std::size_t producer) const {
        return static_cast<std::size_t>(std::ranges::count_if(sent_, [&](const Sent& batch) {
            return batch.producer == producer && batch.standing == Sent::Standing::kUnknown;
        }));
    }
    /// The last batches of a producer that a log has to remember, oldest first.
    [[nodiscard]] std::vector<Sent*> last_of(std::size_t producer) {
        std::vector<Sent*> last;
        for (auto batch = sent_.rbegin();
             batch != sent_.rend() && last.size() < ProducerEntry::kRemembered; ++batch) {
            if (batch->producer == producer) last.push_back(&*batch);
        }
        std::ranges::reverse(last);
        return last;
    }

    [[nodiscard]] static Violation acknowledge(Sent& batch, std::int64_t offset,
                                               Sent::Standing standing) {
        if (batch.offset >= 0 && batch.offset != offset)
            return fmt::format("{} was at {}, and is now at {}", batch.name(), batch.offset,
                               offset);
        batch.offset = offset;
        batch.standing = std::max(batch.standing, standing);
        return std::nullopt;
    }
    [[nodiscard]] std::size_t acknowledged() const {
        return static_cast<std::size_t>(std::ranges::count_if(
            sent_, [](const Sent& b) { return b.standing != Sent::Standing::kUnknown; }));
    }
    /// The machine has died.
    void forget_written() {
        for (auto& batch : sent_) {
            if (batch.standing == Sent::Standing::kWritten)
                batch.standing = Sent::Standing::kUnknown;
        }
    }

    /// Records before `start` are deleted. Of those that nobody has seen, nothing is known.
    void begin_at(std::int64_t start) {
        start_ = std::max(start_, start);
        if (end() >= start_) return;
        while (end() < start_) places_.push_back({.record = {.offset = end(), .timestamp_ms = -1}});
        std::ranges::fill(gap_, true);
    }
    [[nodiscard]] std::int64_t start() const { return start_; }

    /// A consumer has read from the log's start. A zombie's log may be short, but never different;
    /// `all`: it is the owner's.
    [[nodiscard]] Violation observe(const std::vector<Seen>& records, bool all,
                                    std::int64_t now_ms) {
        for (const auto& record : records) {
            if (auto wrong = record.offset < end() ? compare(record) : take_in(record))
                return wrong;
        }
        if (!all) return std::nullopt;
        auto next = start_;
        for (const auto& record : records) {
            if (record.offset < start_) continue;
            for (; next < record.offset; ++next) {
                if (auto wrong = miss(next, now_ms)) return wrong;
            }
            if (auto wrong = find(record)) return wrong;
            ++next;
        }
        for (; next < end(); ++next) {
            if (auto wrong = miss(next, now_ms)) return wrong;
        }
        return std::nullopt;
    }
    /// All that was acknowledged has been seen.
    [[nodiscard]] Violation find_acknowledged() const {
        for (const auto& batch : sent_) {
            if (batch.standing == Sent::Standing::kUnknown) continue;
            for (std::size_t i = 0; i < batch.records.size(); ++i) {
                const auto offset = batch.offset + static_cast<std::int64_t>(i);
                if (offset < start_) continue;
                if (offset >= end() || at(offset).record.name != batch.records[i].name)
                    return fmt::format("{} was acknowledged at {}, and is not there", batch.name(),
                                       batch.offset);
            }
        }
        return std::nullopt;
    }
    [[nodiscard]] Violation find_marker(const std::string& name, std::int64_t offset) const {
        if (offset < start_ || (offset < end() && at(offset).record.name == name))
            return std::nullopt;
        return fmt::format("{} was acknowledged at {}, and is not there", name, offset);
    }
    /// A record from anywhere against what was seen there.
    [[nodiscard]] Violation compare(const Seen& record) const {
        if (record.offset >= end()) return std::nullopt;
        const auto& seen = at(record.offset).record;
        if (seen == record || seen.name.empty()) return std::nullopt;
        return fmt::format("{} was seen at {}, and now {}", seen.name, seen.offset, record.name);
    }
    [[nodiscard]] std::int64_t end() const { return std::ssize(places_); }
    [[nodiscard]] std::int64_t timestamp_of(std::int64_t offset) const {
        return at(offset).record.timestamp_ms;
    }
    /// May a reader of the owner's log find nothing at this offset?
    [[nodiscard]] bool may_miss(std::int64_t offset, std::int64_t now_ms) const {
        return offset >= end() || offset < start_ || at(offset).gone ||
               (keeps_deletions_ms_ &&
                (at(offset).record.marker || aborted(at(offset).record.name) ||
                 superseded(offset) || outlived(offset, now_ms)));
    }
    /// How many records compaction has taken away.
    [[nodiscard]] std::size_t gone() const {
        return static_cast<std::size_t>(std::ranges::count_if(places_, &Place::gone));
    }

    /// The offset of the first record that is not older; -1 when there is none.
    [[nodiscard]] std::int64_t first_at_or_after(std::int64_t timestamp_ms) const {
        const auto found = std::ranges::find_if(places_, [&](const Place& place) {
            return place.record.offset >= start_ && !place.gone &&
                   place.record.timestamp_ms >= timestamp_ms;
        });
        return found == places_.end() ? -1 : found->record.offset;
    }

private:
    struct Place {
        Seen record;
        bool gone = false;  ///< compacted away
    };

    [[nodiscard]] const Place& at(std::int64_t offset) const {
        return places_[static_cast<std::size_t>(offset)];
    }

    /// A record that nobody has seen before.
    [[nodiscard]] Violation take_in(const Seen& record) {
        if (record.offset != end()) return fmt::format("offset {} after {}", record.offset, end());
        if (auto wrong = follow_transaction(record)) return wrong;
        if (record.marker) {
            places_.push_back({.record = record});
            return std::nullopt;
        }
        const auto known = known_.find(record.name);
        if (known == known_.end()) return record.name + " was never sent";
        const auto [producer, sequence] = known->second;
        auto& next = next_seen_[producer];
        const bool follows =
            idempotent(producer) && !gap_[producer] ? sequence == next : sequence >= next;
        gap_[producer] = false;
        if (!follows) return fmt::format("{} where {} of the producer is next", record.name, next);
        next = sequence + 1;
        of_key_[record.key].push_back(record.offset);
        places_.push_back({.record = record});
        return std::nullopt;
    }
    [[nodiscard]] Violation follow_transaction(const Seen& record) {
        const auto found = transaction_of_.find(record.name);
        if (found == transaction_of_.end()) {
            if (record.marker) return record.name + " was never asked for";
            return std::nullopt;
        }
        auto& transaction = *found->second;
        if (record.marker) {
            transaction.ended = true;
        } else if (transaction.ended) {
            return record.name + " comes behind the end of its transaction";
        } else if (transaction.first_offset < 0) {
            transaction.first_offset = record.offset;
        }
        return std::nullopt;
    }

    /// The last record of a key that counts: its transaction, if it has one, was committed.
    [[nodiscard]] std::int64_t last_of(const std::string& key) const {
        const auto offsets = of_key_.find(key);
        if (offsets == of_key_.end()) return -1;
        const auto last = std::ranges::find_if(
            offsets->second.rbegin(), offsets->second.rend(), [&](std::int64_t offset) {
                const auto found = transaction_of_.find(at(offset).record.name);
                return found == transaction_of_.end() ||
                       found->second->decision == Transaction::Decision::kCommit;
            });
        return last == offsets->second.rend() ? -1 : *last;
    }

    /// A later record of its key was seen.
    [[nodiscard]] bool superseded(std::int64_t offset) const {
        return last_of(at(offset).record.key) > offset;
    }
    /// It deletes its key, and everybody has had the time to see that.
    [[nodiscard]] bool outlived(std::int64_t offset, std::int64_t now_ms) const {
        const auto& record = at(offset).record;
        return !record.value &&
               record.timestamp_ms + *keeps_deletions_ms_ <= now_ms + kTimestampSlackMs;
    }

    /// Nothing is at an offset at which something was seen.
    [[nodiscard]] Violation miss(std::int64_t offset, std::int64_t now_ms) {
        auto& place = places_[static_cast<std::size_t>(offset)];
        if (place.record.name.empty()) return std::nullopt;
        if (!may_miss(offset, now_ms))
            return fmt::format("{} was seen at {}, and is not there", place.record.name, offset);
        place.gone = true;
        return std::nullopt;
    }
    /// What compaction has taken away, itself or as the last of its key, does not come back.
    [[nodiscard]] Violation find(const Seen& record) const {
        if (at(record.offset).gone)
            return fmt::format("{} is back at {}", record.name, record.offset);
        if (record.marker) return std::nullopt;
        const auto last = last_of(record.key);
        if (last > record.offset && at(last).gone)
            return fmt::format("{} at {} outlives the deletion of its key at {}", record.name,
                               record.offset, last);
        return std::nullopt;
    }

    const std::optional<std::int64_t> keeps_deletions_ms_;
    std::int32_t next_sequence_[kProducers] = {};
    std::int32_t next_seen_[kProducers] = {};
    std::deque<Sent> sent_;
    std::map<std::string, std::pair<std::size_t, std::int32_t>> known_;
    bool gap_[kProducers] = {};  ///< some of its records may have been deleted before their time
    std::vector<Place> places_;  ///< by offset
    std::map<std::string, std::vector<std::int64_t>> of_key_;
    std::deque<Transaction> transactions_;
    /// By the names of records and markers.
    std::map<std::string, Transaction*> transaction_of_;
    std::int64_t start_ = 0;
};

/// A batch as its producer sends it.
[[nodiscard]] inline std::vector<std::byte> bytes_of(const Sent& batch) {
    wire::BatchBuilder::Options options;
    if (Ledger::idempotent(batch.producer)) {
        options.producer_id = static_cast<std::int64_t>(batch.producer);
        options.producer_epoch = 0;
        options.base_sequence = batch.sequence;
    }
    if (batch.transaction != nullptr) {
        options.producer_id = static_cast<std::int64_t>(batch.producer);
        options.producer_epoch = batch.epoch;
        options.base_sequence = batch.wire_sequence;
        options.transactional = true;
    }
    wire::BatchBuilder builder(options);
    auto timestamp_ms = batch.timestamp_ms;
    for (const auto& record : batch.records) {
        const wire::RecordHeader name{.key = "name", .value = base::as_bytes(record.name)};
        std::optional<base::ByteView> value;
        if (record.value) value = base::as_bytes(*record.value);
        builder.add(timestamp_ms++, base::as_bytes(record.key), value, {&name, 1});
    }
    return builder.build();
}

/// The record of a control batch.
[[nodiscard]] inline std::optional<Seen> seen_marker(const wire::BatchView& batch,
                                                     wire::DecodeSite& site) {
    const auto& header = batch.header;
    const auto marker = parse_marker(batch, site);
    if (!marker || !*marker) return std::nullopt;
    return Seen{.offset = header.base_offset,
                .timestamp_ms = header.max_timestamp,
                .name = name_of({.producer = base::ProducerId{header.producer_id},
                                 .epoch = base::ProducerEpoch{header.producer_epoch},
                                 .coordinator_epoch = (*marker)->coordinator_epoch,
                                 .commit = (*marker)->end == TransactionEnd::kCommit}),
                .marker = true};
}

/// What a read gives, as a client unpacks it.
struct Unpacked {
    std::vector<Seen> records;
    std::int64_t next = -1;  ///< where the next read begins; -1: nothing came
};

[[nodiscard]] inline Result<Unpacked> unpack(const FileSlice& slice, wire::DecodeSite& site) {
    std::vector<std::byte> bytes(slice.length);
    if (slice.length > 0)
        KAAS_TRY(read_exactly(*slice.file, slice.offset, bytes, Patience::kMayBlock));
    Unpacked unpacked;
    for (base::ByteView rest(bytes); !rest.empty();) {
        const auto batch = wire::first_batch(rest);
        if (!batch) return fail(ErrorCode::kCorrupt, batch.error().context);
        if (!wire::check_crc(*batch)) return fail(ErrorCode::kCorrupt, "wrong CRC");
        rest = rest.subspan(batch->bytes.size());
        unpacked.next = batch->header.last_offset() + 1;
        if (batch->header.control()) {
            if (auto marker = seen_marker(*batch, site))
                unpacked.records.push_back(std::move(*marker));
            continue;
        }
        auto reader = wire::RecordReader::open(*batch, site);
        for (wire::Record record; reader && *reader->next(record);) {
            Seen seen{.offset = record.offset,
                      .timestamp_ms = record.timestamp_ms,
                      .name = std::string(base::as_text(*record.headers.at(0).value)),
                      .key = std::string(base::as_text(*record.key))};
            if (record.value) seen.value = std::string(base::as_text(*record.value));
            unpacked.records.push_back(std::move(seen));
        }
    }
    return unpacked;
}

}  // namespace kaas::storage::testing
