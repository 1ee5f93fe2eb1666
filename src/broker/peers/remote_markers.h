#pragma once

#include "base/ids.h"
#include "broker/peers/broker_batches.h"
#include "client/channel.h"
#include "coordinator/done.h"
#include "coordinator/transaction_requests.h"
#include "storage/transaction_marker.h"
#include "wire/error_code.h"
#include "wire/messages/write_txn_markers.h"

#include <functional>
#include <vector>

namespace kaas::broker {

/// Takes markers to partitions, and slots of groups, that other brokers lead.
/// Thread: the link's reactor. Source: Apache `TransactionMarkerChannelManager`.
class RemoteMarkers {
public:
    using Call = std::function<void(base::BrokerId to, const wire::WriteTxnMarkersRequest& request,
                                    client::Channel::Done<wire::WriteTxnMarkersRequest> done)>;

    explicit RemoteMarkers(Call call);

    /// `written` runs once, with what that broker says of it. One that does not know the partition
    /// is behind the sender, who does: NOT_LEADER_OR_FOLLOWER. NETWORK_EXCEPTION: nobody can say.
    void send(base::BrokerId to, const storage::Marker& marker,
              coordinator::TransactionPartition partition,
              coordinator::Done<wire::ErrorCode> written);

private:
    struct Item {
        storage::Marker marker;
        coordinator::TransactionPartition partition;
        coordinator::Done<wire::ErrorCode> written;
    };

    [[nodiscard]] static wire::WriteTxnMarkersRequest request_of(const std::vector<Item>& batch);

    const Call call_;
    BrokerBatches<Item> batches_;
};

}  // namespace kaas::broker
