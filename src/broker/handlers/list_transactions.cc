#include "broker/handlers/list_transactions.h"

#include "base/ids.h"
#include "broker/handlers/slot_calls.h"
#include "coordinator/transaction_metadata.h"
#include "coordinator/transaction_requests.h"
#include "coordinator/transaction_slot.h"

#include <re2/re2.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

namespace kaas::broker {
namespace {

using coordinator::TransactionListing;

/// Fills in what a filter wants; the rest of `response` says which states nobody knows.
coordinator::TransactionFilter read_filter(const wire::ListTransactionsRequest& request,
                                           wire::ListTransactionsResponse& response) {
    coordinator::TransactionFilter filter{.longer_than_ms = request.duration_filter};
    if (!request.state_filters.empty()) filter.states.emplace();
    for (const auto& name : request.state_filters) {
        auto& unknown = response.unknown_state_filters;
        if (const auto state = coordinator::parse_transaction_state(name)) {
            filter.states->insert(*state);
        } else if (std::ranges::find(unknown, name) == unknown.end()) {
            unknown.push_back(name);
        }
    }
    for (const auto id : request.producer_id_filters) filter.producers.emplace(id);
    return filter;
}

void answer(Call& call, wire::ListTransactionsResponse& response,
            const Listed<TransactionListing>& found) {
    if (!found) {
        response.error_code = found.error();
        return call.answer(response);
    }
    for (const auto& one : *found) {
        response.transaction_states.push_back(
            {.transactional_id = one.transactional_id,
             .producer_id = one.producer.value(),
             .transaction_state = coordinator::to_string(one.state)});
    }
    call.answer(response);
}

}  // namespace

void list_transactions(CallPtr call, wire::ListTransactionsRequest request) {
    wire::ListTransactionsResponse response;
    auto filter = read_filter(request, response);
    if (request.transactional_id_pattern && !request.transactional_id_pattern->empty()) {
        RE2::Options options;
        options.set_log_errors(false);
        auto pattern =
            std::make_shared<const RE2>(request.transactional_id_pattern->view(), options);
        if (!pattern->ok()) {
            response = {};
            response.error_code = wire::ErrorCode::kInvalidRegularExpression;
            return call->answer(response);
        }
        filter.id_matches = [pattern](const std::string& id) {
            return RE2::FullMatch(id, *pattern);
        };
    }
    const auto list = [filter = std::move(filter)](auto& slot, auto done) {
        slot.list(filter, std::move(done));
    };
    call->services().coordination.with_all_transactions(
        call->state().partitions.image(),
        listing<TransactionListing>(*call, list,
                                    [call, response = std::move(response)](
                                        const Listed<TransactionListing>& found) mutable {
                                        answer(*call, response, found);
                                    }));
}

}  // namespace kaas::broker
