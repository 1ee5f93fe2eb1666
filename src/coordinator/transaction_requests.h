#pragma once

#include "base/ids.h"
#include "coordinator/done.h"
#include "wire/error_code.h"

#include <chrono>
#include <compare>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

/// What is asked of a transaction coordinator and what it answers: values that own all they hold,
/// because a decoded request lives on the thread of its connection. Error codes are those of the
/// newest version of each API; older ones are the handlers' business.
namespace kaas::coordinator {

/// Levels of the feature `transaction.version` that differ here: with KIP-890 a producer's epoch
/// grows with each transaction that ends. A client shows by its request's version which one it
/// speaks.
using TransactionVersion = std::int8_t;
inline constexpr TransactionVersion kFixedEpoch = 0;
inline constexpr TransactionVersion kEpochBump = 2;

/// One producer in one of its lives (Apache `ProducerIdAndEpoch`).
struct ProducerIdAndEpoch {
    base::ProducerId id = base::kNoProducerId;
    base::ProducerEpoch epoch = base::kNoProducerEpoch;

    friend bool operator==(const ProducerIdAndEpoch&, const ProducerIdAndEpoch&) = default;
};

/// What a transaction writes to. One of `__consumer_offsets` stands for the groups of a slot.
struct TransactionPartition {
    std::string topic;
    base::PartitionId partition;

    friend auto operator<=>(const TransactionPartition&, const TransactionPartition&) = default;
};

/// Of a producer with a transactional id.
struct InitProducerIdRequest {
    std::string transactional_id;
    std::chrono::milliseconds transaction_timeout{};
    std::optional<ProducerIdAndEpoch> current{};  ///< whoever had them before goes on (KIP-360)
    // KIP-939.
    bool enable_two_phase_commit = false;
    bool keep_prepared = false;
};
struct InitProducerIdAnswer {
    ErrorCode error = ErrorCode::kNone;
    ProducerIdAndEpoch producer{};
};

/// AddPartitionsToTxn and AddOffsetsToTxn. The answer is an ErrorCode.
struct AddPartitionsRequest {
    std::string transactional_id;
    ProducerIdAndEpoch producer;
    std::vector<TransactionPartition> partitions;
    TransactionVersion version = kFixedEpoch;
};

/// Whether the transaction has been told of partitions that its producer writes to. The answer is
/// an ErrorCode for each.
struct VerifyPartitionsRequest {
    std::string transactional_id;
    ProducerIdAndEpoch producer;
    std::vector<TransactionPartition> partitions;
};

struct EndTxnRequest {
    std::string transactional_id;
    ProducerIdAndEpoch producer;
    bool commit = false;
    TransactionVersion version = kFixedEpoch;
};
struct EndTxnAnswer {
    ErrorCode error = ErrorCode::kNone;
    ProducerIdAndEpoch producer{};  ///< for the next transaction; only of kEpochBump
};

/// A state by Apache's number (`TransactionState`). Dead and PrepareEpochFence are never seen from
/// outside; clients may ask for them.
enum class TransactionState : std::int8_t {
    kEmpty = 0,
    kOngoing = 1,
    kPrepareCommit = 2,
    kPrepareAbort = 3,
    kCompleteCommit = 4,
    kCompleteAbort = 5,
    kDead = 6,
    kPrepareEpochFence = 7,
};

struct TransactionDescription {
    ErrorCode error = ErrorCode::kNone;
    std::string transactional_id;
    std::string state{};  ///< empty with an error
    std::int32_t timeout_ms = 0;
    std::int64_t start_ms = 0;  ///< -1: none was begun
    ProducerIdAndEpoch producer{};
    std::vector<TransactionPartition> partitions{};  ///< sorted
};

/// Which transactions ListTransactions is about. What is empty restricts nothing.
struct TransactionFilter {
    std::optional<std::set<TransactionState>> states{};
    std::set<base::ProducerId> producers{};
    std::int64_t longer_than_ms = -1;  ///< -1: however old
    std::function<bool(const std::string&)> id_matches{};
};
struct TransactionListing {
    std::string transactional_id;
    base::ProducerId producer;
    TransactionState state;
};

}  // namespace kaas::coordinator
