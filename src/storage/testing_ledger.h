#pragma once

#include "base/bytes.h"
#include "storage/error.h"
#include "storage/file_slice.h"
#include "storage/producer_state.h"
#include "storage/sparse_index.h"
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
#include <string_view>
#include <utility>
#include <vector>

namespace kaas::storage::testing {

/// One record as a consumer sees it.
struct Seen {
    std::int64_t offset;
    std::int64_t timestamp_ms;
    std::string value;

    friend bool operator==(const Seen&, const Seen&) = default;
};

/// One batch of a producer.
struct Sent {
    std::size_t producer;
    std::int32_t sequence;  ///< the producer's own count; on the wire only if it is idempotent
    std::int64_t timestamp_ms;
    std::vector<std::string> values;
    enum class Standing {
        kUnknown,  ///< not answered, or with an error
        kWritten,  ///< survives the process
        kDurable,  ///< survives the machine
    } standing = Standing::kUnknown;
    std::int64_t offset = -1;  ///< once it was answered

    /// Producer and sequence, for messages.
    [[nodiscard]] std::string name() const { return fmt::format("{}.{}", producer, sequence); }
};

/// The model of a partition: what its producers sent and were answered, and what its consumers saw.
/// A function that checks gives the violation, if there is one.
class Ledger {
public:
    using Violation = std::optional<std::string>;

    static constexpr std::size_t kProducers = 4;
    /// The others never repeat anything.
    [[nodiscard]] static bool idempotent(std::size_t producer) { return producer < 2; }

    /// The next batch of a producer: a record for each number of filling bytes.
    Sent& issue(std::size_t producer, std::int64_t timestamp_ms,
                const std::vector<std::size_t>& fillings) {
        auto& next = next_sequence_[producer];
        Sent batch{
            .producer = producer, .sequence = next, .timestamp_ms = timestamp_ms, .values = {}};
        for (const auto filling : fillings) {
            batch.values.push_back(fmt::format("{}.{}{:*<{}}", producer, next, "", filling));
            known_[batch.values.back()] = {producer, next++};
        }
        return sent_.emplace_back(std::move(batch));
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
        while (end() < start_) seen_.push_back({.offset = end(), .timestamp_ms = -1, .value = {}});
        std::ranges::fill(gap_, true);
    }
    [[nodiscard]] std::int64_t start() const { return start_; }

    /// A consumer has read from the log's start. A zombie's log may be short, but never different.
    [[nodiscard]] Violation observe(const std::vector<Seen>& records, bool all) {
        for (const auto& record : records) {
            if (auto wrong = record.offset < end() ? compare(record) : take_in(record))
                return wrong;
        }
        if (!all) return std::nullopt;
        if (std::ssize(records) < end() - start_)
            return fmt::format("{} of {} records that were seen are there", records.size(),
                               end() - start_);
        return find_acknowledged();
    }
    /// A record from anywhere against what was seen there.
    [[nodiscard]] Violation compare(const Seen& record) const {
        const auto at = static_cast<std::size_t>(record.offset);
        if (at >= seen_.size() || seen_[at] == record || seen_[at].value.empty())
            return std::nullopt;
        return fmt::format("{} was seen at {}, and now {}", short_of(seen_[at].value), at,
                           short_of(record.value));
    }
    [[nodiscard]] const std::vector<Seen>& seen() const { return seen_; }
    [[nodiscard]] std::int64_t end() const { return std::ssize(seen_); }

    /// The offset of the first record that is not older; -1 when there is none.
    [[nodiscard]] std::int64_t first_at_or_after(std::int64_t timestamp_ms) const {
        const auto found = std::ranges::find_if(seen_, [&](const Seen& record) {
            return record.offset >= start_ && record.timestamp_ms >= timestamp_ms;
        });
        return found == seen_.end() ? -1 : found->offset;
    }

private:
    [[nodiscard]] static std::string short_of(const std::string& value) {
        return value.substr(0, value.find('*'));
    }

    /// A record that nobody has seen before.
    [[nodiscard]] Violation take_in(const Seen& record) {
        if (record.offset != end()) return fmt::format("offset {} after {}", record.offset, end());
        const auto known = known_.find(record.value);
        if (known == known_.end()) return short_of(record.value) + " was never sent";
        const auto [producer, sequence] = known->second;
        auto& next = next_seen_[producer];
        const bool follows =
            idempotent(producer) && !gap_[producer] ? sequence == next : sequence >= next;
        gap_[producer] = false;
        if (!follows)
            return fmt::format("{} where {} of the producer is next", short_of(record.value), next);
        next = sequence + 1;
        seen_.push_back(record);
        return std::nullopt;
    }

    [[nodiscard]] Violation find_acknowledged() const {
        for (const auto& batch : sent_) {
            if (batch.standing == Sent::Standing::kUnknown) continue;
            for (std::size_t i = 0; i < batch.values.size(); ++i) {
                const auto offset = static_cast<std::size_t>(batch.offset) + i;
                if (std::cmp_less(offset, start_)) continue;
                if (offset >= seen_.size() || seen_[offset].value != batch.values[i])
                    return fmt::format("{} was acknowledged at {}, and is not there", batch.name(),
                                       batch.offset);
            }
        }
        return std::nullopt;
    }

    std::int32_t next_sequence_[kProducers] = {};
    std::int32_t next_seen_[kProducers] = {};
    std::deque<Sent> sent_;
    std::map<std::string, std::pair<std::size_t, std::int32_t>> known_;
    bool gap_[kProducers] = {};  ///< some of its records may have been deleted before their time
    std::vector<Seen> seen_;
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
    wire::BatchBuilder builder(options);
    auto timestamp_ms = batch.timestamp_ms;
    for (const auto& value : batch.values)
        builder.add(timestamp_ms++, base::as_bytes("key"), base::as_bytes(value));
    return builder.build();
}

/// What a read gives, as a client unpacks it.
[[nodiscard]] inline Result<std::vector<Seen>> records_of(const FileSlice& slice,
                                                          wire::DecodeSite& site) {
    std::vector<std::byte> bytes(slice.length);
    if (slice.length > 0)
        KAAS_TRY(read_exactly(*slice.file, slice.offset, bytes, Patience::kMayBlock));
    std::vector<Seen> seen;
    for (base::ByteView rest(bytes); !rest.empty();) {
        const auto batch = wire::first_batch(rest);
        if (!batch) return fail(ErrorCode::kCorrupt, batch.error().context);
        if (!wire::check_crc(*batch)) return fail(ErrorCode::kCorrupt, "wrong CRC");
        rest = rest.subspan(batch->bytes.size());
        auto reader = wire::RecordReader::open(*batch, site);
        wire::Record record;
        while (reader && *reader->next(record)) {
            seen.push_back({.offset = record.offset,
                            .timestamp_ms = record.timestamp_ms,
                            .value = std::string(base::as_text(*record.value))});
        }
    }
    return seen;
}

}  // namespace kaas::storage::testing
