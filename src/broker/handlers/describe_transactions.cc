#include "broker/handlers/describe_transactions.h"

#include "base/utf8.h"
#include "broker/handlers/transaction_calls.h"
#include "coordinator/transaction_requests.h"
#include "coordinator/transaction_slot.h"

#include <cstddef>
#include <memory>
#include <utility>

namespace kaas::broker {
namespace {

using coordinator::TransactionDescription;
using wire::ErrorCode;
using State = wire::DescribeTransactionsResponse::TransactionState;

void fill(const TransactionDescription& description, State& out) {
    out.error_code = description.error;
    if (description.error != ErrorCode::kNone) return;
    out.transaction_state = description.state;
    out.transaction_timeout_ms = description.timeout_ms;
    out.transaction_start_time_ms = description.start_ms;
    out.producer_id = description.producer.id.value();
    out.producer_epoch = description.producer.epoch.value();
    for (const auto& [topic, partition] : description.partitions) {
        if (out.topics.empty() || out.topics.back().topic != topic)
            out.topics.emplace_back().topic = topic;
        out.topics.back().partitions.push_back(partition.value());
    }
}

}  // namespace

void describe_transactions(CallPtr call, wire::DescribeTransactionsRequest request) {
    struct Describing {
        wire::DescribeTransactionsResponse response;
        std::size_t open = 1;  // until all have been asked
    };
    auto describing = std::make_shared<Describing>();
    const auto close_one = [call, describing] {
        if (--describing->open == 0) call->answer(describing->response);
    };
    auto& states = describing->response.transaction_states;
    states.resize(request.transactional_ids.size());
    for (std::size_t i = 0; i < states.size(); ++i) {
        states[i].transactional_id = request.transactional_ids[i];
        if (states[i].transactional_id.empty()) {
            states[i].error_code = ErrorCode::kInvalidRequest;
            continue;
        }
        ++describing->open;
        const auto id = base::to_utf8(states[i].transactional_id);
        ask_transactions<TransactionDescription>(
            *call, id, [id](auto& slot, auto done) { slot.describe(id, std::move(done)); },
            [describing, i, close_one](const TransactionDescription& description) {
                fill(description, describing->response.transaction_states[i]);
                close_one();
            });
    }
    close_one();
}

}  // namespace kaas::broker
