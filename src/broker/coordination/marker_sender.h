#pragma once

#include "base/executor.h"
#include "base/ids.h"
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
class TransactionPeers;

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
/// for, at whichever broker leads those by the newest image. That image has every partition of a
/// transaction that was not deleted: this broker knew it when it was added, and whoever succeeds to
/// a slot has seen all that came before. Thread: the coordinators' loop.
class MarkerSender final : public coordinator::MarkerSink {
public:
    /// What it needs is there; nothing is sent before. All of it outlives it; `peers` is null where
    /// there are no other brokers. Thread: any.
    void begin(cluster::Node& node, Coordination& coordination, TransactionPeers* peers);

    void send(const storage::Marker& marker, const coordinator::TransactionPartition& partition,
              coordinator::Done<wire::ErrorCode> written) override;

private:
    /// The other broker that leads it, if one does.
    [[nodiscard]] std::optional<base::BrokerId> led_elsewhere(
        const coordinator::TransactionPartition& partition);

    Coordination* coordination_ = nullptr;
    TransactionPeers* peers_ = nullptr;
    base::BrokerId self_{-1};
    std::optional<cluster::PartitionReader> partitions_;
};

}  // namespace kaas::broker
