#include "broker/coordination/marker_sender.h"

#include "base/ids.h"
#include "broker/coordination/coordination.h"
#include "broker/errors.h"
#include "catalog/slot.h"
#include "cluster/partition_table.h"
#include "storage/partition_log.h"

#include <expected>
#include <memory>
#include <utility>

namespace kaas::broker {
namespace {

using wire::ErrorCode;
using Written = coordinator::Done<ErrorCode>;

ErrorCode code_of(const cluster::Hosted& hosted) {
    switch (hosted.state) {
        case cluster::Hosting::kServing: return ErrorCode::kNone;
        case cluster::Hosting::kUnknown: return ErrorCode::kUnknownTopicOrPartition;
        case cluster::Hosting::kOffline: return ErrorCode::kKafkaStorageError;
        case cluster::Hosting::kOpening:
        case cluster::Hosting::kNotHere: break;
    }
    return ErrorCode::kNotLeaderOrFollower;
}

}  // namespace

void MarkerSender::begin(cluster::Node& node, Coordination& coordination) {
    node_ = &node;
    coordination_ = &coordination;
    partitions_.emplace(node.partitions().reader());
}

void MarkerSender::send(const storage::Marker& marker,
                        const coordinator::TransactionPartition& partition, Written written) {
    if (catalog::slot_kind(partition.topic) == catalog::SlotKind::kGroup) {
        return send_to_groups(marker, partition.partition, std::move(written));
    }
    auto& loop = coordination_->loop();
    const auto hosted = partitions_->find(partition.topic, partition.partition);
    if (const auto error = code_of(hosted); error != ErrorCode::kNone) {
        return loop.post([written = std::move(written), error]() mutable { written(error); });
    }
    // The log takes it or refuses it: one of the two answers.
    auto answer = std::make_shared<Written>(std::move(written));
    const auto taken = hosted.log->append_marker(
        marker, loop, [answer](const storage::Result<storage::Appended>& appended) {
            (*answer)(appended ? ErrorCode::kNone : to_wire(appended.error().code));
        });
    if (taken) return;
    loop.post([answer, error = to_wire(taken.error().code)] { (*answer)(error); });
}

void MarkerSender::send_to_groups(const storage::Marker& marker, base::PartitionId slot,
                                  Written written) {
    coordination_->with_group_slot(*node_->partitions().image(), slot,
                                   [marker, written = std::move(written)](auto groups) mutable {
                                       if (!groups) return written(groups.error());
                                       (*groups)->end_transaction(marker, std::move(written));
                                   });
}

}  // namespace kaas::broker
