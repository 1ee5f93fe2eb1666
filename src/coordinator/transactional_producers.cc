#include "coordinator/transactional_producers.h"

#include "base/ids.h"
#include "storage/producer_state.h"
#include "storage/transaction_marker.h"

#include <atomic>
#include <cstdint>
#include <expected>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace kaas::coordinator {
namespace {

/// From this `transaction.version` on, each transaction ends under an epoch of its own (KIP-890).
constexpr std::int8_t kBumpingVersion = 2;
constexpr base::ProducerEpoch kLastEpoch{std::numeric_limits<std::int16_t>::max()};

/// No two of a process are the same: a slot that left and came back takes no guard of its past.
storage::VerificationGuard next_guard() {
    static std::atomic<std::uint64_t> last = 0;
    return {last.fetch_add(1) + 1};
}

}  // namespace

const TransactionalProducers::Producer* TransactionalProducers::find(base::ProducerId id) const {
    const auto place = producers_.find(id);
    return place == producers_.end() ? nullptr : &place->second;
}

std::expected<storage::Verification, ErrorCode> TransactionalProducers::begin_verification(
    base::ProducerId producer, base::ProducerEpoch epoch, std::int64_t now_ms) {
    if (const auto* known = find(producer); known != nullptr) {
        if (epoch < known->epoch) return std::unexpected(ErrorCode::kInvalidProducerEpoch);
        if (known->open && epoch == known->epoch) return storage::Ongoing{};
    }
    const auto [place, is_new] = verifying_.try_emplace(producer);
    if (is_new) place->second = {.guard = next_guard(), .since_ms = now_ms};
    return place->second.guard;
}

ErrorCode TransactionalProducers::check_commit(
    base::ProducerId producer, base::ProducerEpoch epoch,
    std::optional<storage::VerificationGuard> shown) const {
    const auto* known = find(producer);
    if (known != nullptr && epoch < known->epoch) return ErrorCode::kInvalidProducerEpoch;
    if (!shown || (known != nullptr && known->open && epoch == known->epoch)) {
        return ErrorCode::kNone;
    }
    const auto asked = verifying_.find(producer);
    const bool verified = asked != verifying_.end() && asked->second.guard == *shown;
    return verified ? ErrorCode::kNone : ErrorCode::kInvalidTxnState;
}

ErrorCode TransactionalProducers::check_marker(const storage::Marker& marker) const {
    const auto* known = find(marker.producer);
    if (known == nullptr) return ErrorCode::kNone;
    const bool bumps = marker.transaction_version >= kBumpingVersion;
    // Of the same epoch, a marker repeats one that came through, or the epochs are used up.
    const bool may_repeat = !known->open || marker.epoch == kLastEpoch;
    const bool good =
        marker.epoch > known->epoch || (marker.epoch == known->epoch && (!bumps || may_repeat));
    if (!good) return ErrorCode::kInvalidProducerEpoch;
    return marker.coordinator_epoch < known->coordinator_epoch
               ? ErrorCode::kTransactionCoordinatorFenced
               : ErrorCode::kNone;
}

void TransactionalProducers::committed(base::ProducerId producer, base::ProducerEpoch epoch,
                                       const std::string& group, std::int64_t now_ms) {
    auto& known = producers_[producer];
    known.epoch = epoch;
    known.seen_ms = now_ms;
    known.open = true;
    known.groups.insert(group);
    verifying_.erase(producer);
}

std::set<std::string, std::less<>> TransactionalProducers::ended(const storage::Marker& marker,
                                                                 std::int64_t now_ms) {
    auto& known = producers_[marker.producer];
    known.epoch = marker.epoch;
    known.coordinator_epoch = marker.coordinator_epoch;
    known.seen_ms = now_ms;
    known.open = false;
    verifying_.erase(marker.producer);
    return std::exchange(known.groups, {});
}

bool TransactionalProducers::knows(const storage::Marker& marker) const {
    const auto* known = find(marker.producer);
    return known != nullptr && !known->open && known->epoch == marker.epoch &&
           known->coordinator_epoch == marker.coordinator_epoch;
}

void TransactionalProducers::expire(std::int64_t now_ms, std::int64_t silence_ms) {
    const auto last = now_ms - silence_ms;
    std::erase_if(producers_,
                  [&](const auto& one) { return !one.second.open && one.second.seen_ms <= last; });
    std::erase_if(verifying_, [&](const auto& one) { return one.second.since_ms <= last; });
}

}  // namespace kaas::coordinator
