#include "broker/verification.h"

#include "base/ids.h"
#include "broker/handlers/transaction_calls.h"
#include "broker/peers/transaction_peers.h"
#include "catalog/image.h"
#include "catalog/model.h"
#include "catalog/slot.h"
#include "coordinator/transaction_slot.h"

#include <string_view>
#include <utility>
#include <vector>

namespace kaas::broker {
namespace {

using wire::ErrorCode;
using Errors = std::vector<ErrorCode>;

/// To who writes, a fenced producer is one with an old epoch.
ErrorCode for_writer(ErrorCode error, bool knows_abortable) {
    if (error == ErrorCode::kTransactionAbortable && !knows_abortable)
        return ErrorCode::kInvalidTxnState;
    return fencing_error(error, false);
}

base::BrokerId coordinator_of(const Call& call, std::string_view transactional_id) {
    const auto& image = call.state().partitions.image();
    const auto* topic = image.topic(catalog::slot_topic(catalog::SlotKind::kTransaction));
    if (topic == nullptr) return catalog::kNoBroker;
    const auto slot = catalog::slot_of(transactional_id, topic->partitions.size());
    return image.leader(*topic->partition(slot));
}

}  // namespace

void verify_transaction(const Call& call, VerificationRequest request,
                        coordinator::Done<Errors> done) {
    const auto count = request.partitions.size();
    const auto coordinator = coordinator_of(call, request.transactional_id);
    if (coordinator == catalog::kNoBroker)
        return done(Errors(count, ErrorCode::kCoordinatorNotAvailable));
    auto told = [knows = request.knows_abortable, done = std::move(done)](Errors errors) mutable {
        for (auto& error : errors) error = for_writer(error, knows);
        done(std::move(errors));
    };
    auto* peers = call.services().transaction_peers;
    if (peers != nullptr && coordinator != call.services().node.id()) {
        return peers->verify(coordinator, std::move(request),
                             brought_home<Errors>(call.home(), std::move(told)));
    }
    const auto id = request.transactional_id;
    if (request.adds) {
        return ask_transactions<ErrorCode>(
            call, id,
            [request = std::move(request)](auto& slot, auto answered) mutable {
                slot.add_partitions({.transactional_id = std::move(request.transactional_id),
                                     .producer = request.producer,
                                     .partitions = std::move(request.partitions),
                                     .version = coordinator::kEpochBump},
                                    std::move(answered));
            },
            [count, told = std::move(told)](ErrorCode error) mutable {
                told(Errors(count, error));
            });
    }
    ask_transactions<Errors>(
        call, id,
        [request = std::move(request)](auto& slot, auto answered) {
            slot.verify_partitions({request.transactional_id, request.producer, request.partitions},
                                   std::move(answered));
        },
        std::move(told), [count](ErrorCode error) { return Errors(count, error); });
}

}  // namespace kaas::broker
