#pragma once

#include "base/executor.h"
#include "cluster/node.h"
#include "cluster/partition_table.h"
#include "coordinator/done.h"
#include "coordinator/transaction_requests.h"
#include "coordinator/transaction_slot.h"
#include "storage/transaction_marker.h"
#include "wire/error_code.h"

#include <optional>

namespace kaas::broker {

class Coordination;

/// What a marker needs on its way to where it belongs.
struct MarkerWay {
    cluster::PartitionReader& partitions;  ///< of the thread that sends
    Coordination& coordination;
    base::Executor& home;  ///< runs the answer
};

/// Takes a marker to the partition, or the slot of groups, that this broker leads; `written` runs
/// once, never within the call, with what `MarkerSink` says. Other errors than its two: Kafka's
/// code for why it could not be, such as NOT_LEADER_OR_FOLLOWER.
void write_marker(const MarkerWay& way, const storage::Marker& marker,
                  const coordinator::TransactionPartition& partition,
                  coordinator::Done<wire::ErrorCode> written);

/// Takes the markers of this broker's transactions to the partitions and group slots that they are
/// for. Thread: the coordinators' loop.
class MarkerSender final : public coordinator::MarkerSink {
public:
    /// What it needs is there; nothing is sent before. Both outlive it. Thread: any.
    void begin(cluster::Node& node, Coordination& coordination);

    void send(const storage::Marker& marker, const coordinator::TransactionPartition& partition,
              coordinator::Done<wire::ErrorCode> written) override;

private:
    Coordination* coordination_ = nullptr;
    std::optional<cluster::PartitionReader> partitions_;
};

}  // namespace kaas::broker
