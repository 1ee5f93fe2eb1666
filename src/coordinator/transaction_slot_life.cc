// A slot from its journal to the end of its leadership, and what time does to it.

#include "base/clock.h"
#include "base/ids.h"
#include "base/result.h"
#include "catalog/error.h"
#include "catalog/json_fields.h"
#include "coordinator/transaction_metadata.h"
#include "coordinator/transaction_requests.h"
#include "coordinator/transaction_slot.h"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <cstdint>
#include <list>
#include <memory>
#include <utility>

namespace kaas::coordinator {
namespace {

namespace json = boost::json;
using State = TransactionState;

/// Grows when older versions could no longer understand what we write.
constexpr std::int32_t kFormat = 1;

}  // namespace

catalog::Result<void> TransactionSlot::load_picture(const json::object& picture) {
    catalog::JsonFields fields(picture, "picture");
    KAAS_TRY(fields.check_format(kFormat, kFormat));
    for (const auto& entry : fields.array("transactions")) {
        const auto* line = entry.if_object();
        if (line == nullptr) {
            return catalog::fail(catalog::ErrorCode::kMalformed,
                                 "picture has a transaction that is not an object");
        }
        KAAS_TRY(load_change(*line));
    }
    unknown_ = fields.unknown();
    return fields.fault();
}

catalog::Result<void> TransactionSlot::load_change(const json::object& change) {
    KAAS_TRY_ASSIGN(line, parse_transaction_line(change));
    const auto known = transactions_.find(line.metadata.transactional_id);
    if (known != transactions_.end()) transactions_.erase(known);
    if (line.removed) return {};
    auto transaction = std::make_shared<Transaction>(std::move(line.metadata));
    transactions_.emplace(transaction->metadata.transactional_id, transaction);
    return {};
}

void TransactionSlot::start() {
    bool any_ongoing = false;
    for (const auto& [id, transaction] : transactions_) {
        any_ongoing |= transaction->metadata.state == State::kOngoing;
        if (transaction->metadata.is_ending()) begin_ending(transaction);
    }
    if (any_ongoing) arm_abort_timer();
    if (!transactions_.empty()) arm_expiration_timer();
}

json::object TransactionSlot::picture() const {
    json::array transactions;
    transactions.reserve(transactions_.size());
    for (const auto& [id, transaction] : transactions_) {
        // One that is just being made counts with its first line.
        if (transaction->metadata.producer.epoch == base::kNoProducerEpoch) continue;
        transactions.push_back(to_json(transaction->metadata));
    }
    json::object picture{{"format", kFormat}, {"transactions", std::move(transactions)}};
    catalog::put_unknown(picture, unknown_);
    return picture;
}

void TransactionSlot::close() {
    closed_ = true;
    services_.timers.cancel(abort_timer_);
    services_.timers.cancel(expiration_timer_);
    std::list<Held> held;
    for (const auto& [id, transaction] : transactions_) {
        if (transaction->ending == nullptr) continue;
        services_.timers.cancel(transaction->ending->retry);
        held.splice(held.end(), transaction->ending->held);
    }
    for (auto& one : held) services_.timers.cancel(one.patience);
    for (auto& one : held) one.go(Wake::kClosed);
}

void TransactionSlot::arm_expiration_timer() {
    if (expiration_timer_.armed()) return;
    services_.timers.arm(expiration_timer_,
                         services_.clock.now() + services_.config.expiration_interval,
                         [this] { expire_ids(); });
}

void TransactionSlot::expire_ids() {
    const auto before_ms = services_.clock.wall_ms() - services_.config.id_expiration.count();
    for (auto at = transactions_.begin(); at != transactions_.end();) {
        const auto& metadata = at->second->metadata;
        const bool may_go = metadata.state != State::kOngoing && !metadata.is_ending();
        if (!may_go || metadata.update_ms > before_ms) {
            ++at;
            continue;
        }
        auto line = removal_line(metadata.transactional_id);
        at = transactions_.erase(at);
        services_.writer.append(std::move(line));
        services_.metrics.expired_ids.add();
    }
    if (!transactions_.empty()) arm_expiration_timer();
}

}  // namespace kaas::coordinator
