#include "broker/handlers/list_transactions.h"

#include "base/ids.h"
#include "broker/handlers/transaction_calls.h"
#include "coordinator/transaction_metadata.h"
#include "coordinator/transaction_requests.h"
#include "coordinator/transaction_slot.h"

#include <re2/re2.h>

#include <algorithm>
#include <cstddef>
#include <expected>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace kaas::broker {
namespace {

using wire::ErrorCode;
using Listings = std::expected<std::vector<coordinator::TransactionListing>, ErrorCode>;

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

/// One request under way. Thread: the loop, then the call's reactor.
struct Listing {
    CallPtr call;
    wire::ListTransactionsResponse response{};
    std::vector<coordinator::TransactionListing> found{};
    std::size_t open = 0;

    void take(Listings listings) {
        if (listings) {
            std::ranges::move(*listings, std::back_inserter(found));
        } else {
            response.error_code = listings.error();
        }
        if (--open == 0) finish();
    }
    void finish() {
        auto& home = call->home();
        home.post([self = std::move(*this)]() mutable { self.answer(); });
    }
    void answer() {
        // With an error there is nothing else.
        if (response.error_code != ErrorCode::kNone) found.clear();
        for (const auto& one : found) {
            response.transaction_states.push_back(
                {.transactional_id = one.transactional_id,
                 .producer_id = one.producer.value(),
                 .transaction_state = coordinator::to_string(one.state)});
        }
        call->answer(response);
    }
};

}  // namespace

void list_transactions(CallPtr call, wire::ListTransactionsRequest request) {
    auto listing = std::make_shared<Listing>(Listing{.call = call});
    auto filter = read_filter(request, listing->response);
    if (request.transactional_id_pattern && !request.transactional_id_pattern->empty()) {
        RE2::Options options;
        options.set_log_errors(false);
        auto pattern =
            std::make_shared<const RE2>(request.transactional_id_pattern->view(), options);
        if (!pattern->ok()) {
            listing->response = {};
            listing->response.error_code = ErrorCode::kInvalidRegularExpression;
            return call->answer(listing->response);
        }
        filter.id_matches = [pattern](const std::string& id) {
            return RE2::FullMatch(id, *pattern);
        };
    }
    call->services().coordination.with_all_transactions(
        call->state().partitions.image(), [listing, filter = std::move(filter)](auto slots) {
            if (!slots) {
                listing->response.error_code = slots.error();
                return listing->finish();
            }
            listing->open = slots->size();
            if (slots->empty()) return listing->finish();
            for (auto* slot : *slots) {
                slot->list(filter, [listing](Listings found) { listing->take(std::move(found)); });
            }
        });
}

}  // namespace kaas::broker
