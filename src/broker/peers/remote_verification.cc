#include "broker/peers/remote_verification.h"

#include "client/error.h"

#include <cstddef>
#include <utility>
#include <vector>

namespace kaas::broker {
namespace {

using wire::ErrorCode;
using Result = wire::AddPartitionsToTxnResponse::AddPartitionsToTxnResult;

/// The errors of what was asked, in order; all fail together where the answer is of something else.
RemoteVerification::Errors errors_of(const VerificationRequest& asked, const Result& told) {
    RemoteVerification::Errors errors;
    for (const auto& topic : told.topic_results) {
        for (const auto& partition : topic.results_by_partition) {
            const auto at = errors.size();
            const bool fits = at < asked.partitions.size() &&
                              topic.name == asked.partitions[at].topic &&
                              partition.partition_index == asked.partitions[at].partition.value();
            if (!fits) break;
            errors.push_back(partition.partition_error_code);
        }
    }
    if (errors.size() == asked.partitions.size()) return errors;
    return RemoteVerification::Errors(asked.partitions.size(), ErrorCode::kUnknownServerError);
}

RemoteVerification::Errors errors_of(
    const VerificationRequest& asked, std::size_t place,
    const client::Result<const wire::AddPartitionsToTxnResponse*>& response) {
    const auto all = [&](ErrorCode error) {
        return RemoteVerification::Errors(asked.partitions.size(), error);
    };
    if (!response) return all(ErrorCode::kNetworkException);
    if ((*response)->error_code != ErrorCode::kNone) return all((*response)->error_code);
    const auto& results = (*response)->results_by_transaction;
    if (place >= results.size()) return all(ErrorCode::kUnknownServerError);
    return errors_of(asked, results[place]);
}

}  // namespace

RemoteVerification::RemoteVerification(Call call)
    : call_(std::move(call)), batches_([this](auto to, auto batch, auto answered) {
          const auto request = request_of(batch);
          call_(to, request,
                [batch = std::move(batch), answered = std::move(answered)](
                    client::Result<const wire::AddPartitionsToTxnResponse*> response) mutable {
                    for (std::size_t i = 0; i < batch.size(); ++i)
                        batch[i].done(errors_of(batch[i].request, i, response));
                    answered();
                });
      }) {}

void RemoteVerification::ask(base::BrokerId to, VerificationRequest request,
                             coordinator::Done<Errors> done) {
    batches_.add(to, {std::move(request), std::move(done)});
}

wire::AddPartitionsToTxnRequest RemoteVerification::request_of(const std::vector<Item>& batch) {
    wire::AddPartitionsToTxnRequest request;
    for (const auto& [asked, done] : batch) {
        auto& out = request.transactions.emplace_back();
        out.transactional_id = asked.transactional_id;
        out.producer_id = asked.producer.id.value();
        out.producer_epoch = asked.producer.epoch.value();
        out.verify_only = !asked.adds;
        for (const auto& [topic, partition] : asked.partitions) {
            if (out.topics.empty() || !(out.topics.back().name == topic))
                out.topics.emplace_back().name = topic;
            out.topics.back().partitions.push_back(partition.value());
        }
    }
    return request;
}

}  // namespace kaas::broker
