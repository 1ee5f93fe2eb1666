#include "broker/coordination/marker_sender.h"

#include "broker/call.h"
#include "broker/coordination/coordination.h"
#include "broker/errors.h"
#include "broker/peers/transaction_peers.h"
#include "catalog/image.h"
#include "catalog/model.h"
#include "catalog/slot.h"
#include "coordinator/group_slot.h"
#include "storage/partition_log.h"

#include <memory>
#include <optional>
#include <utility>

namespace kaas::broker {
namespace {

using wire::ErrorCode;
using Written = coordinator::Done<ErrorCode>;

/// Of coordinators, in words for who looks for a leader (Apache: KafkaApis).
ErrorCode for_sender(ErrorCode error) {
    switch (error) {
        case ErrorCode::kCoordinatorNotAvailable:
        case ErrorCode::kCoordinatorLoadInProgress:
        case ErrorCode::kNotCoordinator: return ErrorCode::kNotLeaderOrFollower;
        default: return error;
    }
}

void refuse(base::Executor& home, ErrorCode error, Written written) {
    home.post([error, written = std::move(written)]() mutable { written(error); });
}

void end_in_groups(const MarkerWay& way, const storage::Marker& marker,
                   const coordinator::TransactionPartition& slot, Written written) {
    const auto& image = way.partitions.image();
    const auto* topic = image.topic(slot.topic);
    if (topic == nullptr || topic->partition(slot.partition) == nullptr) {
        // No group has kept anything in it.
        return refuse(way.home, ErrorCode::kUnknownTopicOrPartition, std::move(written));
    }
    way.coordination.with_group_slot(
        image, slot.partition,
        [marker, done = brought_home<ErrorCode>(
                     way.home, [written = std::move(written)](ErrorCode outcome) mutable {
                         written(for_sender(outcome));
                     })](auto groups) mutable {
            if (!groups) return done(groups.error());
            (*groups)->end_transaction(marker, std::move(done));
        });
}

}  // namespace

void write_marker(const MarkerWay& way, const storage::Marker& marker,
                  const coordinator::TransactionPartition& partition, Written written) {
    const auto kind = catalog::slot_kind(partition.topic);
    if (kind == catalog::SlotKind::kGroup) {
        return end_in_groups(way, marker, partition, std::move(written));
    }
    const auto hosted = way.partitions.find(partition.topic, partition.partition);
    // A slot of transactions has no records, wherever it is.
    const auto error = kind ? ErrorCode::kUnknownTopicOrPartition : to_wire(hosted.state);
    if (error != ErrorCode::kNone) return refuse(way.home, error, std::move(written));
    // The log takes it or refuses it: one of the two answers.
    auto answer = std::make_shared<Written>(std::move(written));
    const auto taken = hosted.log->append_marker(
        marker, way.home, [answer](const storage::Result<storage::Appended>& appended) {
            (*answer)(appended ? ErrorCode::kNone : to_wire(appended.error().code));
        });
    if (taken) return;
    way.home.post([answer, error = to_wire(taken.error().code)] { (*answer)(error); });
}

void MarkerSender::begin(cluster::Node& node, Coordination& coordination, TransactionPeers* peers) {
    coordination_ = &coordination;
    peers_ = peers;
    self_ = node.id();
    partitions_.emplace(node.partitions().reader());
}

void MarkerSender::send(const storage::Marker& marker,
                        const coordinator::TransactionPartition& partition, Written written) {
    if (const auto leader = led_elsewhere(partition)) {
        return peers_->send_marker(
            *leader, marker, partition,
            brought_home<ErrorCode>(coordination_->loop(), std::move(written)));
    }
    write_marker({*partitions_, *coordination_, coordination_->loop()}, marker, partition,
                 std::move(written));
}

std::optional<base::BrokerId> MarkerSender::led_elsewhere(
    const coordinator::TransactionPartition& partition) {
    if (peers_ == nullptr) return std::nullopt;
    const auto& image = partitions_->image();
    const auto* topic = image.topic(partition.topic);
    const auto* known = topic == nullptr ? nullptr : topic->partition(partition.partition);
    const auto leader = known == nullptr ? catalog::kNoBroker : image.leader(*known);
    if (leader == catalog::kNoBroker || leader == self_) return std::nullopt;
    // A slot of transactions has no records, wherever it is.
    if (catalog::slot_kind(topic->name) == catalog::SlotKind::kTransaction) return std::nullopt;
    return leader;
}

}  // namespace kaas::broker
