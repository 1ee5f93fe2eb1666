#pragma once

#include "base/ids.h"
#include "coordinator/group_requests.h"
#include "storage/producer_state.h"
#include "storage/transaction_marker.h"

#include <cstdint>
#include <expected>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

namespace kaas::coordinator {

/// The producers that commit offsets in transactions to one slot, fenced as a partition fences
/// those that write to it (Apache `ProducerAppendInfo` with origin COORDINATOR;
/// `storage::ProducerState` is the same for records, with sequences). Passive; owner's thread.
class TransactionalProducers {
public:
    struct Producer {
        base::ProducerEpoch epoch = base::kNoProducerEpoch;
        std::int32_t coordinator_epoch = -1;  ///< highest of the markers
        std::int64_t seen_ms = 0;
        bool open = false;  ///< has a transaction with offsets
        /// Where offsets may wait for its end, if the groups still are.
        std::set<std::string, std::less<>> groups{};

        friend bool operator==(const Producer&, const Producer&) = default;
    };

    /// Asked before a commit that may begin a transaction. Errors: INVALID_PRODUCER_EPOCH.
    [[nodiscard]] std::expected<storage::Verification, ErrorCode> begin_verification(
        base::ProducerId producer, base::ProducerEpoch epoch, std::int64_t now_ms);
    /// Judges a commit; `shown` is what it was verified by, empty when verification is switched
    /// off. INVALID_PRODUCER_EPOCH, INVALID_TXN_STATE.
    [[nodiscard]] ErrorCode check_commit(base::ProducerId producer, base::ProducerEpoch epoch,
                                         std::optional<storage::VerificationGuard> shown) const;
    /// Judges a marker. INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED.
    [[nodiscard]] ErrorCode check_marker(const storage::Marker& marker) const;

    /// Takes in a commit for a group.
    void committed(base::ProducerId producer, base::ProducerEpoch epoch, const std::string& group,
                   std::int64_t now_ms);
    /// Takes in a marker; returns the groups where offsets may have waited for it.
    [[nodiscard]] std::set<std::string, std::less<>> ended(const storage::Marker& marker,
                                                           std::int64_t now_ms);
    /// True when the marker would change nothing.
    [[nodiscard]] bool knows(const storage::Marker& marker) const;

    /// Of a picture: offsets wait in the group, and what else is known.
    void waits(base::ProducerId id, const std::string& group) {
        producers_[id].groups.insert(group);
    }
    void load(base::ProducerId id, Producer producer) {
        auto& known = producers_[id];
        producer.groups = std::move(known.groups);
        known = std::move(producer);
    }
    /// Forgets those without an open transaction that were silent for `silence_ms`, and questions
    /// to a transaction coordinator that are as old.
    void expire(std::int64_t now_ms, std::int64_t silence_ms);
    [[nodiscard]] const std::map<base::ProducerId, Producer>& all() const { return producers_; }

private:
    struct Verifying {
        storage::VerificationGuard guard;
        std::int64_t since_ms = 0;
    };
    [[nodiscard]] const Producer* find(base::ProducerId id) const;

    std::map<base::ProducerId, Producer> producers_;
    std::unordered_map<base::ProducerId, Verifying> verifying_;
};

}  // namespace kaas::coordinator
