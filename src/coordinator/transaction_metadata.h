#pragma once

#include "base/ids.h"
#include "catalog/error.h"
#include "catalog/model.h"
#include "coordinator/transaction_requests.h"

#include <boost/json/object.hpp>

#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace kaas::coordinator {

[[nodiscard]] std::string_view to_string(TransactionState state);
/// By the name that Apache shows.
[[nodiscard]] std::optional<TransactionState> parse_transaction_state(std::string_view name);

/// The highest epoch that a producer is given; the one above it is for fencing it (Apache
/// `TransactionMetadata.isEpochExhausted`).
inline constexpr base::ProducerEpoch kLastProducerEpoch{std::numeric_limits<std::int16_t>::max() -
                                                        1};

/// What a slot keeps of one transactional id (Apache `TransactionMetadata`).
struct TransactionMetadata {
    std::string transactional_id;
    ProducerIdAndEpoch producer;
    /// Of the state before; who comes with it and a used up epoch is the same producer.
    base::ProducerId previous_producer_id = base::kNoProducerId;
    /// Of the state after the one that is being prepared, when the epochs of this id are used up.
    base::ProducerId next_producer_id = base::kNoProducerId;
    /// With which a producer may still ask for its current epoch (KIP-360).
    base::ProducerEpoch last_epoch = base::kNoProducerEpoch;
    std::int32_t timeout_ms = 0;
    TransactionState state = TransactionState::kEmpty;
    std::set<TransactionPartition> partitions{};
    std::int64_t start_ms = -1;
    std::int64_t update_ms = -1;
    TransactionVersion version = kFixedEpoch;  ///< of whoever changed the transaction last
    catalog::UnknownKeys unknown{};

    [[nodiscard]] bool is_ending() const {
        return state == TransactionState::kPrepareCommit ||
               state == TransactionState::kPrepareAbort;
    }
    /// No epoch is left for another transaction.
    [[nodiscard]] bool exhausted() const { return producer.epoch >= kLastProducerEpoch; }
    /// False for a transaction that another coordinator decides about (KIP-939).
    [[nodiscard]] bool times_out() const {
        return timeout_ms != std::numeric_limits<std::int32_t>::max();
    }

    friend bool operator==(const TransactionMetadata&, const TransactionMetadata&) = default;
};

/// One line of the journal: all that is known of an id, or that it is gone. The last line of an id
/// counts. What has its usual value is left out.
[[nodiscard]] std::string to_line(const TransactionMetadata& metadata);
[[nodiscard]] std::string removal_line(std::string_view transactional_id);
/// The same in a picture.
[[nodiscard]] boost::json::object to_json(const TransactionMetadata& metadata);

struct TransactionLine {
    TransactionMetadata metadata;
    bool removed = false;  ///< only the id counts
};
/// Errors: kMalformed.
[[nodiscard]] catalog::Result<TransactionLine> parse_transaction_line(
    const boost::json::object& line);

}  // namespace kaas::coordinator
