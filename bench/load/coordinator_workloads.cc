#include "load/coordinator_workloads.h"

#include "common/api.h"
#include "common/batch.h"
#include "common/fd.h"
#include "load/connection.h"
#include "load/coordinator_messages.h"
#include "load/messages.h"
#include "load/workloads.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kaas::bench {
namespace {

constexpr Parsed kMore{.kind = Parsed::Kind::kMore};
constexpr Parsed kDone{.kind = Parsed::Kind::kDone};

}  // namespace

CommitWorkload::CommitWorkload(const Topic& topic, size_t connections) {
    for (size_t i = 0; i < connections; ++i) {
        frames_.push_back(offset_commit_request(topic, group(topic, i), topic.partitions, 7));
    }
}

std::string CommitWorkload::group(const Topic& topic, size_t connection) {
    return topic.name + "-" + std::to_string(connection);
}

void CommitWorkload::next(Connection& connection, InFlight& request) {
    request.frame = &frames_[static_cast<size_t>(connection.index())];
}

Parsed CommitWorkload::parse(Connection&, const InFlight&, std::string_view answer, bool arrived,
                             int) {
    if (!arrived) return kMore;
    auto reader = after_header(Api::kOffsetCommit, answer);
    expect_no_error("OffsetCommit", read_offset_commit(reader));
    return kDone;
}

TransactionWorkload::TransactionWorkload(const Topic& topic, const BatchShape& shape,
                                         std::string transactional_id,
                                         const ProducerAnswer& producer)
    : topic_(topic),
      records_(shape.records),
      transactional_id_(std::move(transactional_id)),
      producer_(producer) {
    for (int i = 0; i < topic.partitions; ++i) {
        batches_.push_back(make_batch(shape.records, shape.value_bytes, static_cast<uint64_t>(i)));
    }
}

void TransactionWorkload::next(Connection&, InFlight& request) {
    if (step_ == Step::kOver) step_ = Step::kProduce;
    if (step_ == Step::kProduce) {
        began_ns_ = request.started_ns;
        std::vector<Placement> placements;
        placements.reserve(batches_.size());
        for (auto& batch : batches_) {
            // Each transaction has an epoch of its own, so its sequences begin anew.
            make_transactional(batch, {producer_.producer_id, producer_.producer_epoch, 0});
            placements.push_back({static_cast<int>(placements.size()), batch});
        }
        frame_ = produce_request(topic_, -1, placements, transactional_id_);
    } else if (step_ == Step::kEnd) {
        frame_ = commit_transaction_request(transactional_id_, producer_.producer_id,
                                            producer_.producer_epoch);
    }
    request.frame = &frame_;
}

Parsed TransactionWorkload::parse(Connection&, const InFlight&, std::string_view answer,
                                  bool arrived, int) {
    if (!arrived) return kMore;
    if (step_ == Step::kEnd) {
        after_end(answer);
        step_ = Step::kOver;
    } else {
        step_ = after_produce(answer);
    }
    return kDone;
}

TransactionWorkload::Step TransactionWorkload::after_produce(std::string_view answer) {
    auto reader = after_header(Api::kProduce, answer);
    const auto found = read_produce(reader);
    if (found && found->error == kConcurrentTransactions) {
        ++again;
        return Step::kProduceAgain;
    }
    expect_no_error("Produce", found ? std::optional(found->error) : std::nullopt);
    return Step::kEnd;
}

void TransactionWorkload::after_end(std::string_view answer) {
    auto reader = after_header(Api::kEndTxn, answer);
    const auto found = read_producer(reader);
    expect_no_error("EndTxn", found ? std::optional(found->error) : std::nullopt);
    if (found->producer_id == producer_.producer_id &&
        found->producer_epoch == producer_.producer_epoch) {
        fail("a transaction was committed and the epoch is the same");
    }
    producer_ = *found;
}

void TransactionWorkload::finished(Connection&, const InFlight&, int64_t now) {
    if (step_ != Step::kOver) return;
    latency.record(now - began_ns_);
    counters.records += static_cast<uint64_t>(records_) * batches_.size();
    for (const auto& batch : batches_) counters.bytes += batch.size();
}

}  // namespace kaas::bench
