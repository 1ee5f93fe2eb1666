#pragma once

#include "base/loop.h"
#include "cluster/node.h"
#include "coordinator/done.h"
#include "coordinator/transaction_requests.h"
#include "coordinator/transaction_slot.h"
#include "storage/transaction_marker.h"
#include "wire/error_code.h"

#include <memory>
#include <optional>

namespace kaas::broker {

class Coordination;

/// Takes the markers of this broker's transactions to the partitions and group slots that they are
/// for. Thread: the coordinators' loop.
class MarkerSender final : public coordinator::MarkerSink {
public:
    /// What it needs is there; nothing is sent before. Both outlive it. Thread: any.
    void begin(cluster::Node& node, Coordination& coordination);

    void send(const storage::Marker& marker, const coordinator::TransactionPartition& partition,
              coordinator::Done<wire::ErrorCode> written) override;

private:
    void send_to_groups(const storage::Marker& marker, base::PartitionId slot,
                        coordinator::Done<wire::ErrorCode> written);

    Coordination* coordination_ = nullptr;
    cluster::Node* node_ = nullptr;
    std::optional<cluster::PartitionReader> partitions_;
};

}  // namespace kaas::broker
