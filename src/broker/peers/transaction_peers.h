#pragma once

#include "base/executor.h"
#include "base/ids.h"
#include "broker/peers/broker_calls.h"
#include "broker/peers/remote_markers.h"
#include "broker/peers/remote_verification.h"
#include "catalog/image.h"
#include "client/channel.h"
#include "coordinator/done.h"
#include "coordinator/transaction_requests.h"
#include "storage/transaction_marker.h"
#include "wire/error_code.h"

#include <vector>

namespace kaas::broker {

/// What transactions need of other brokers: markers for partitions that those lead, and word of
/// transactions that those coordinate. A verification may wait for markers at its coordinator, so
/// the two have connections of their own.
/// Thread: any, unless said otherwise; answers come on the link's reactor.
class TransactionPeers {
public:
    /// `link`: the reactor of `channel`.
    TransactionPeers(base::Executor& link, const client::Channel::Options& channel);

    void apply(catalog::ImagePtr next);
    /// Ends what is under way; what comes later ends with NETWORK_EXCEPTION. Thread: the link's.
    void end();
    /// As `RemoteMarkers::send`.
    void send_marker(base::BrokerId to, const storage::Marker& marker,
                     coordinator::TransactionPartition partition,
                     coordinator::Done<wire::ErrorCode> written);
    /// As `RemoteVerification::ask`.
    void verify(base::BrokerId to, VerificationRequest request,
                coordinator::Done<std::vector<wire::ErrorCode>> done);

private:
    base::Executor& link_;
    RemoteMarkers markers_;
    RemoteVerification verification_;
    BrokerCalls marker_calls_;
    BrokerCalls verification_calls_;
};

}  // namespace kaas::broker
