#include "broker/handlers/write_txn_markers.h"

#include "base/ids.h"
#include "broker/errors.h"
#include "broker/handlers/partition_access.h"
#include "broker/handlers/transaction_calls.h"
#include "catalog/slot.h"
#include "coordinator/group_slot.h"
#include "storage/partition_log.h"
#include "storage/transaction_marker.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace kaas::broker {
namespace {

using wire::ErrorCode;

/// Coordinators repeat a marker where they find the leader by then (Apache: KafkaApis).
ErrorCode for_coordinator(ErrorCode error) {
    switch (error) {
        case ErrorCode::kCoordinatorNotAvailable:
        case ErrorCode::kCoordinatorLoadInProgress:
        case ErrorCode::kNotCoordinator: return ErrorCode::kNotLeaderOrFollower;
        default: return error;
    }
}

/// One request under way. Thread: the call's reactor.
class Marking : public std::enable_shared_from_this<Marking> {
public:
    Marking(CallPtr call, wire::WriteTxnMarkersRequest request)
        : call_(std::move(call)), request_(std::move(request)) {}

    void start() {
        open_ = 1;  // this loop: no early answer while it runs
        for (const auto& asked : request_.markers) {
            const storage::Marker marker{.producer = base::ProducerId(asked.producer_id),
                                         .epoch = base::ProducerEpoch(asked.producer_epoch),
                                         .coordinator_epoch = asked.coordinator_epoch,
                                         .commit = asked.transaction_result,
                                         .transaction_version = asked.transaction_version};
            for (const auto& topic : asked.topics) {
                for (const auto partition : topic.partition_indexes)
                    write(marker, topic.name, partition);
            }
        }
        close_one();
    }

private:
    void write(const storage::Marker& marker, std::string_view topic, std::int32_t partition) {
        // A producer's markers are answered together, the last one of a partition counting.
        auto& error = errors_[marker.producer][std::string(topic)][partition];
        if (marker.producer.value() < 0 || marker.epoch.value() < 0) {
            error = ErrorCode::kUnknownServerError;  // as Apache, which can build no such batch
            return;
        }
        const auto slot = catalog::slot_kind(topic);
        if (slot == catalog::SlotKind::kGroup) return end_in_groups(marker, partition, error);
        const auto log = led_log(*call_, TopicRef::named(topic), partition);
        if (!log) {
            // Apache has no such partition online, whatever the reason.
            const bool coming = log.error() == ErrorCode::kNotLeaderOrFollower;
            error = coming ? log.error() : ErrorCode::kUnknownTopicOrPartition;
            return;
        }
        ++open_;
        const auto appended = (*log)->append_marker(
            marker, call_->home(),
            [self = shared_from_this(), &error](const storage::Result<storage::Appended>& done) {
                if (!done) error = to_wire(done.error().code);
                self->close_one();
            });
        if (appended) return;
        error = to_wire(appended.error().code);
        --open_;
    }

    void end_in_groups(const storage::Marker& marker, std::int32_t slot, ErrorCode& error) {
        const auto& image = call_->state().partitions.image();
        const auto* topic = image.topic(catalog::slot_topic(catalog::SlotKind::kGroup));
        if (topic == nullptr || topic->partition(base::PartitionId(slot)) == nullptr) {
            error = ErrorCode::kUnknownTopicOrPartition;
            return;
        }
        ++open_;
        call_->services().coordination.with_group_slot(
            image, base::PartitionId(slot),
            [marker, done = brought_home<ErrorCode>(
                         call_->home(), [self = shared_from_this(), &error](ErrorCode outcome) {
                             error = for_coordinator(outcome);
                             self->close_one();
                         })](auto groups) mutable {
                if (!groups) return done(groups.error());
                (*groups)->end_transaction(marker, std::move(done));
            });
    }

    void close_one() {
        if (--open_ > 0) return;
        wire::WriteTxnMarkersResponse response;
        for (const auto& [producer, topics] : errors_) {
            auto& marker = response.markers.emplace_back();
            marker.producer_id = producer.value();
            for (const auto& [name, partitions] : topics) {
                auto& topic = marker.topics.emplace_back();
                topic.name = name;
                for (const auto& [index, error] : partitions) {
                    topic.partitions.push_back({.partition_index = index, .error_code = error});
                }
            }
        }
        call_->answer(response);
    }

    CallPtr call_;
    wire::WriteTxnMarkersRequest request_;
    std::map<base::ProducerId, std::map<std::string, std::map<std::int32_t, ErrorCode>>> errors_;
    std::size_t open_ = 0;
};

}  // namespace

void write_txn_markers(CallPtr call, wire::WriteTxnMarkersRequest request) {
    std::make_shared<Marking>(std::move(call), std::move(request))->start();
}

}  // namespace kaas::broker
