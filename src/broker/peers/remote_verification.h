#pragma once

#include "base/ids.h"
#include "broker/peers/broker_batches.h"
#include "client/channel.h"
#include "coordinator/done.h"
#include "coordinator/transaction_requests.h"
#include "wire/error_code.h"
#include "wire/messages/add_partitions_to_txn.h"

#include <functional>
#include <string>
#include <vector>

namespace kaas::broker {

/// What the leader of partitions, or of a group, asks the transaction coordinator before it takes
/// the first of a transaction (KIP-890; Apache `AddPartitionsToTxnManager`).
struct VerificationRequest {
    std::string transactional_id;
    coordinator::ProducerIdAndEpoch producer;
    std::vector<coordinator::TransactionPartition> partitions;
    bool adds = false;             ///< the partitions become part of the transaction with it
    bool knows_abortable = false;  ///< the client, TRANSACTION_ABORTABLE
};

/// Asks coordinators of other brokers. Other than Apache's it keeps two requests of one producer
/// apart, instead of failing the first.
/// Thread: the link's reactor.
class RemoteVerification {
public:
    using Call =
        std::function<void(base::BrokerId to, const wire::AddPartitionsToTxnRequest& request,
                           client::Channel::Done<wire::AddPartitionsToTxnRequest> done)>;
    using Errors = std::vector<wire::ErrorCode>;

    explicit RemoteVerification(Call call);

    /// `done` runs once, with the coordinator's error for each partition, in order.
    /// NETWORK_EXCEPTION for all: nobody can say, and asking again is harmless.
    void ask(base::BrokerId to, VerificationRequest request, coordinator::Done<Errors> done);

private:
    struct Item {
        VerificationRequest request;
        coordinator::Done<Errors> done;
    };

    [[nodiscard]] static wire::AddPartitionsToTxnRequest request_of(const std::vector<Item>& batch);

    const Call call_;
    BrokerBatches<Item> batches_;
};

}  // namespace kaas::broker
