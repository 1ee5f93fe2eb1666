#pragma once

#include "load/connection.h"
#include "load/coordinator_messages.h"
#include "load/messages.h"
#include "load/workloads.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kaas::bench {

/// The same OffsetCommit again and again, a group for each connection, of all partitions.
class CommitWorkload : public Workload {
public:
    CommitWorkload(const Topic& topic, size_t connections);

    /// The group of the n-th connection.
    static std::string group(const Topic& topic, size_t connection);

    void next(Connection& connection, InFlight& request) override;
    Parsed parse(Connection& connection, const InFlight& request, std::string_view answer,
                 bool arrived, int cuts) override;

private:
    std::vector<std::string> frames_;  // by connection
};

/// One producer's transactions, one after the other on one connection: a Produce request with a
/// batch for each partition, which adds the partitions too (KIP-890), then EndTxn. `latency` is of
/// whole transactions. A Produce that is refused because the transaction before is not over yet is
/// sent again at once and counted.
class TransactionWorkload : public Workload {
public:
    TransactionWorkload(const Topic& topic, const BatchShape& shape, std::string transactional_id,
                        const ProducerAnswer& producer);

    void next(Connection& connection, InFlight& request) override;
    Parsed parse(Connection& connection, const InFlight& request, std::string_view answer,
                 bool arrived, int cuts) override;
    void finished(Connection& connection, const InFlight& request, int64_t now) override;

    uint64_t again = 0;

private:
    enum class Step : uint8_t { kProduce, kProduceAgain, kEnd, kOver };

    Step after_produce(std::string_view answer);
    void after_end(std::string_view answer);

    Topic topic_;
    int records_;
    std::string transactional_id_;
    ProducerAnswer producer_;
    std::vector<std::string> batches_;
    Step step_ = Step::kProduce;
    int64_t began_ns_ = 0;
    std::string frame_;
};

}  // namespace kaas::bench
