#include "broker/handlers/add_partitions_to_txn.h"

#include "base/ids.h"
#include "base/utf8.h"
#include "broker/handlers/partition_access.h"
#include "broker/handlers/transaction_calls.h"
#include "catalog/topic_name.h"
#include "coordinator/transaction_requests.h"
#include "coordinator/transaction_slot.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kaas::broker {
namespace {

using wire::ErrorCode;
using Topics = std::vector<wire::AddPartitionsToTxnRequest::AddPartitionsToTxnTopic>;
using Transaction = wire::AddPartitionsToTxnRequest::AddPartitionsToTxnTransaction;
using TopicResult = wire::AddPartitionsToTxnResponse::AddPartitionsToTxnTopicResult;

constexpr std::int16_t kFencesFrom = 2;
constexpr std::int16_t kBatchedFrom = 4;

/// One request under way. Thread: the call's reactor.
class Adding : public std::enable_shared_from_this<Adding> {
public:
    Adding(CallPtr call, wire::AddPartitionsToTxnRequest request)
        : call_(std::move(call)),
          request_(std::move(request)),
          batched_(call_->version() >= kBatchedFrom) {}

    void start() {
        if (!batched_) {
            request_.transactions.push_back(
                {.transactional_id = request_.v3_and_below_transactional_id,
                 .producer_id = request_.v3_and_below_producer_id,
                 .producer_epoch = request_.v3_and_below_producer_epoch,
                 .topics = std::move(request_.v3_and_below_topics)});
        }
        results_.resize(request_.transactions.size());
        open_ = 1;  // this loop: no early answer while it runs
        for (std::size_t t = 0; t < results_.size(); ++t) {
            lay_out(t);
            ++open_;
            ask(t);
        }
        close_one();
    }

private:
    void lay_out(std::size_t t) {
        for (const auto& topic : request_.transactions[t].topics) {
            auto& result = results_[t].emplace_back();
            result.name = topic.name;
            for (const auto partition : topic.partitions)
                result.results_by_partition.push_back({.partition_index = partition});
        }
    }
    /// Calls `set(partition result, topic's name)` for each of a transaction.
    template <class Set>
    void for_each(std::size_t t, Set set) {
        for (auto& topic : results_[t]) {
            for (auto& partition : topic.results_by_partition) set(partition, topic.name.view());
        }
    }
    void answer_all(std::size_t t, ErrorCode error) {
        const auto told = fencing_error(error, call_->version() >= kFencesFrom);
        for_each(t, [told](auto& result, auto) { result.partition_error_code = told; });
        close_one();
    }

    [[nodiscard]] ErrorCode check(std::string_view topic, std::int32_t partition) const {
        // Clients have no business in the coordinators' topics.
        if (!batched_ && catalog::is_internal_topic(topic))
            return ErrorCode::kTopicAuthorizationFailed;
        const auto* found = find_topic(*call_, TopicRef::named(topic));
        const bool exists =
            found != nullptr && found->partition(base::PartitionId(partition)) != nullptr;
        return exists ? ErrorCode::kNone : ErrorCode::kUnknownTopicOrPartition;
    }
    /// All are added, or none.
    [[nodiscard]] bool may_be_added(std::size_t t) {
        bool good = true;
        for_each(t, [&](auto& result, std::string_view topic) {
            result.partition_error_code = check(topic, result.partition_index);
            good &= result.partition_error_code == ErrorCode::kNone;
        });
        if (good) return true;
        for_each(t, [](auto& result, auto) {
            if (result.partition_error_code == ErrorCode::kNone)
                result.partition_error_code = ErrorCode::kOperationNotAttempted;
        });
        return false;
    }

    void ask(std::size_t t) {
        const auto& transaction = request_.transactions[t];
        if (!may_be_added(t)) return close_one();
        if (transaction.transactional_id.empty()) return answer_all(t, ErrorCode::kInvalidRequest);
        std::vector<coordinator::TransactionPartition> partitions;
        for_each(t, [&](const auto& result, std::string_view topic) {
            partitions.push_back({std::string(topic), base::PartitionId(result.partition_index)});
        });
        const coordinator::ProducerIdAndEpoch producer{
            base::ProducerId(transaction.producer_id),
            base::ProducerEpoch(transaction.producer_epoch)};
        const auto id = base::to_utf8(transaction.transactional_id);
        if (transaction.verify_only) return verify(t, {id, producer, std::move(partitions)});
        add(t, {.transactional_id = id,
                .producer = producer,
                .partitions = std::move(partitions),
                .version = batched_ ? coordinator::kEpochBump : coordinator::kFixedEpoch});
    }
    void add(std::size_t t, coordinator::AddPartitionsRequest asked) {
        const auto id = asked.transactional_id;
        ask_transactions<ErrorCode>(
            *call_, id,
            [asked = std::move(asked)](auto& slot, auto done) mutable {
                slot.add_partitions(std::move(asked), std::move(done));
            },
            [self = shared_from_this(), t](ErrorCode error) { self->answer_all(t, error); });
    }
    void verify(std::size_t t, coordinator::VerifyPartitionsRequest asked) {
        const auto id = asked.transactional_id;
        const auto count = asked.partitions.size();
        ask_transactions<std::vector<ErrorCode>>(
            *call_, id,
            [asked = std::move(asked)](auto& slot, auto done) {
                slot.verify_partitions(asked, std::move(done));
            },
            [self = shared_from_this(), t](const std::vector<ErrorCode>& errors) {
                auto error = errors.begin();
                self->for_each(t,
                               [&](auto& result, auto) { result.partition_error_code = *error++; });
                self->close_one();
            },
            [count](ErrorCode error) { return std::vector(count, error); });
    }

    void close_one() {
        if (--open_ > 0) return;
        wire::AddPartitionsToTxnResponse response;
        if (batched_) {
            for (std::size_t t = 0; t < results_.size(); ++t) {
                response.results_by_transaction.push_back(
                    {.transactional_id = request_.transactions[t].transactional_id,
                     .topic_results = std::move(results_[t])});
            }
        } else {
            response.results_by_topic_v3_and_below = std::move(results_.front());
        }
        call_->answer(response);
    }

    CallPtr call_;
    wire::AddPartitionsToTxnRequest request_;
    bool batched_;
    /// By transaction of the request.
    std::vector<std::vector<TopicResult>> results_;
    std::size_t open_ = 0;
};

}  // namespace

void add_partitions_to_txn(CallPtr call, wire::AddPartitionsToTxnRequest request) {
    std::make_shared<Adding>(std::move(call), std::move(request))->start();
}

}  // namespace kaas::broker
