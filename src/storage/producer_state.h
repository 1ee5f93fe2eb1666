#pragma once

#include "base/bytes.h"
#include "base/ids.h"
#include "storage/aborted_index.h"
#include "storage/error.h"
#include "storage/transaction_marker.h"
#include "wire/record_batch.h"

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

namespace kaas::storage {

/// One batch that a producer wrote, as far as telling duplicates needs it.
struct ProducedBatch {
    std::int32_t last_sequence = -1;
    std::int32_t offset_delta = 0;
    base::Offset last_offset{-1};
    std::int64_t timestamp_ms = -1;

    [[nodiscard]] std::int32_t first_sequence() const;
    [[nodiscard]] base::Offset first_offset() const { return last_offset - offset_delta; }

    friend bool operator==(const ProducedBatch&, const ProducedBatch&) = default;
};

/// What is known of one producer (Apache `ProducerStateEntry`): its epoch and the last five
/// batches.
struct ProducerEntry {
    static constexpr std::size_t kRemembered = 5;

    base::ProducerEpoch epoch = base::kNoProducerEpoch;
    std::int32_t coordinator_epoch = -1;
    std::int64_t last_timestamp_ms = -1;  ///< of the records
    std::int64_t seen_ms = -1;            ///< our own clock, when it last wrote
    std::optional<base::Offset> transaction_start{};
    base::Offset changed_at{-1};  ///< of the last batch or marker that touched this entry

    [[nodiscard]] std::span<const ProducedBatch> batches() const {
        return {batches_.data(), count_};
    }
    [[nodiscard]] std::int32_t last_sequence() const {
        return count_ == 0 ? -1 : batches_[count_ - 1].last_sequence;
    }
    void set_epoch(base::ProducerEpoch next);
    void add(const ProducedBatch& batch);

    friend bool operator==(const ProducerEntry& a, const ProducerEntry& b);

private:
    std::array<ProducedBatch, kRemembered> batches_{};  ///< oldest first
    std::size_t count_ = 0;
};

/// A producer and all that is known of it: what is kept of `ProducerState`.
struct ProducerImage {
    base::ProducerId id;
    ProducerEntry entry;

    friend bool operator==(const ProducerImage&, const ProducerImage&) = default;
};

/// A `.snapshot` file of Apache's version 1, for its tools: it holds only the last batch of a
/// producer. We ourselves read producers from the manifest.
[[nodiscard]] std::vector<std::byte> encode_snapshot(std::span<const ProducerImage> producers);
/// Errors: kCorrupt.
[[nodiscard]] Result<std::vector<ProducerImage>> decode_snapshot(base::ByteView snapshot);

/// Shows that the transaction coordinator was asked about a producer since its last transaction
/// ended here (Apache `VerificationGuard`, KIP-890): only then may a batch begin the next. 0:
/// nobody asked. No two of a process are the same.
struct VerificationGuard {
    std::uint64_t value = 0;

    friend bool operator==(const VerificationGuard&, const VerificationGuard&) = default;
};
/// The transaction is open here already, so nothing is to be verified.
struct Ongoing {};
using Verification = std::variant<Ongoing, VerificationGuard>;

/// Where a transaction began and ended in this partition; what a marker completed.
struct CompletedTransaction {
    base::ProducerId producer_id;
    base::Offset first_offset;
    base::Offset last_offset;         ///< of the marker
    base::Offset last_stable_offset;  ///< as of `AbortedTransaction`
    bool aborted = false;

    /// For the index, if it was aborted.
    [[nodiscard]] std::optional<AbortedTransaction> index_entry() const;
};

/// The idempotent and transactional producers of one partition.
///
/// State follows the appended batches, in flight ones included; `PartitionLog` holds it under its
/// append mutex. Rules and file format are Apache 4.4's (`ProducerAppendInfo`,
/// `ProducerStateManager`).
class ProducerState {
public:
    struct Duplicate {
        base::Offset base_offset;
        base::Offset last_offset;
        std::int64_t timestamp_ms;
    };

    /// What the first batch of a transaction is asked for. The lowest sequence that was verified is
    /// remembered: a batch with a higher one may not come before it. `supports_epoch_bump`: the
    /// producer has an epoch for each transaction, so that its first sequence here is 0. Errors:
    /// kInvalidProducerEpoch.
    [[nodiscard]] Result<Verification> begin_verification(base::ProducerId producer,
                                                          base::ProducerEpoch epoch,
                                                          std::int32_t base_sequence,
                                                          bool supports_epoch_bump,
                                                          std::int64_t now_ms);

    /// Judges a client's batch: nothing to say (append it), the batch that it repeats, or an error.
    /// `shown`: by what it was verified; empty when verification is switched off. Errors:
    /// kInvalidProducerEpoch, kInvalidTxnState, kOutOfOrderSequence.
    [[nodiscard]] Result<std::optional<Duplicate>> classify(
        const wire::BatchHeader& batch, std::optional<VerificationGuard> shown) const;
    /// Judges a marker that a coordinator sends. Errors: kInvalidProducerEpoch,
    /// kTransactionCoordinatorFenced.
    [[nodiscard]] Result<void> check_marker(const Marker& marker) const;

    /// Takes in a data batch that has its offset; also what recovery replays. True when it begins
    /// a transaction.
    bool record(const wire::BatchHeader& batch, std::int64_t now_ms);
    /// Takes in the marker that ends a transaction.
    [[nodiscard]] std::optional<CompletedTransaction> end_transaction(const Marker& marker,
                                                                      base::Offset marker_offset,
                                                                      std::int64_t timestamp_ms,
                                                                      std::int64_t now_ms);

    /// The first offset that a read of committed data may not pass, given that all below
    /// `high_watermark` is durable. Empty when there is none.
    [[nodiscard]] std::optional<base::Offset> first_unstable(base::Offset high_watermark);

    /// When the producer that was silent for longest in an open transaction last wrote, by our own
    /// clock. Empty when none is open.
    [[nodiscard]] std::optional<std::int64_t> longest_open_ms() const;

    /// Forgets producers without an open transaction that were silent for `silence_ms`. Apache asks
    /// the records' times; then whoever sends old ones is forgotten at once, and his repetitions
    /// become duplicates.
    void expire(std::int64_t now_ms, std::int64_t silence_ms);

    /// The state to keep, as it is now; and the way back, which replaces everything.
    [[nodiscard]] std::vector<ProducerImage> images() const;
    void load(std::span<const ProducerImage> images);

    [[nodiscard]] const ProducerEntry* find(base::ProducerId producer) const;
    [[nodiscard]] const std::unordered_map<base::ProducerId, ProducerEntry>& all() const {
        return producers_;
    }
    [[nodiscard]] bool empty() const {
        return producers_.empty() && (transactions_ == nullptr || transactions_->ongoing.empty());
    }

private:
    /// What is being asked about a producer whose transaction is not open here (Apache
    /// `VerificationStateEntry`).
    struct Verifying {
        VerificationGuard guard;
        std::int64_t since_ms = 0;
        std::int32_t lowest_sequence = 0;
        base::ProducerEpoch epoch;
        bool supports_epoch_bump = false;
    };
    struct Transactions {
        std::unordered_map<base::ProducerId, Verifying> verifying;
        /// Open ones by first offset.
        std::map<base::Offset, base::ProducerId> ongoing;
        /// Ended ones whose marker is not known to be durable: first offset to marker offset.
        std::map<base::Offset, base::Offset> ending;
    };
    [[nodiscard]] Transactions& transactions();
    [[nodiscard]] bool is_open(base::ProducerId producer, base::ProducerEpoch epoch) const;
    [[nodiscard]] const Verifying* verifying(base::ProducerId producer) const;
    [[nodiscard]] Result<void> check_verified(const wire::BatchHeader& batch,
                                              std::optional<VerificationGuard> shown) const;
    [[nodiscard]] Result<void> check_order(const wire::BatchHeader& batch) const;

    std::unordered_map<base::ProducerId, ProducerEntry> producers_;
    /// Made for the first: most partitions never see one.
    std::unique_ptr<Transactions> transactions_;
};

}  // namespace kaas::storage
